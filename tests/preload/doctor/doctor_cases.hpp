#pragma once

// A machine on which everything works, cases that change one fact of it, and where the program may
// lie: in a clone's build folder, installed, in a wheel's environment, or where no pages are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/doctor/bounded.hpp"
#include "tools/weir/doctor/checks.hpp"
#include "tools/weir/doctor/collect.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::cli::doctor::testing {

/// The folder of a package, with the pages as `cmake --install` puts them there.
inline std::string installed_folder() {
  static const weir::testing::TemporaryDirectory kFolder;
  static const Bounded kInstalled =
      run_program(CMAKE_PROGRAM,
                  {CMAKE_PROGRAM, "-DCMAKE_INSTALL_PREFIX=" + kFolder.file("usr"),
                   "-DWEIR_SOURCE=" SOURCE_FOLDER, "-DWEIR_SCRATCH=" + kFolder.file("scratch"),
                   "-DWEIR_DOCUMENTS=share/doc/weir", "-DWEIR_DATA=share", "-P",
                   SOURCE_FOLDER "/tools/cmake/install_documents.cmake"},
                  {}, std::chrono::minutes(1));
  EXPECT_EQ(kInstalled.exit_code, 0) << kInstalled.err;
  return kFolder.file("usr");
}

/// Where pages are in each layout; in the last, nowhere.
inline const std::vector<std::string>& layouts() {
  static const std::vector<std::string> kLayouts{
      find_pages(SOURCE_FOLDER "/build/dev/tools/weir/weir"),
      find_pages(installed_folder() + "/bin/weir"),
      find_pages(installed_folder() + "/lib/python3.11/site-packages/weir/bin/weir"),
      find_pages("/nowhere/bin/weir")};
  return kLayouts;
}

/// Checks that somebody with this layout has what the remedy names.
inline void expect_what_it_names(const std::string& remedy, const std::string& pages) {
  static constexpr std::array<std::string_view, 8> kSources{
      "docs/", "tools/", "tests/", "bench/", "build/", "trainer/", "allocator/", "scheduler/"};
  namespace fs = std::filesystem;
  std::istringstream words(remedy);
  for (std::string word; words >> word;) {
    word.erase(0, word.find_first_not_of("(\"'"));
    word.erase(word.find_last_not_of(")\"',;:.") + 1);
    EXPECT_TRUE(std::ranges::none_of(kSources, [&](auto begin) { return word.starts_with(begin); }))
        << "only a clone has '" << word << "': " << remedy;
    if (!word.ends_with(".md")) continue;
    EXPECT_EQ(word.starts_with('/'), !pages.empty()) << remedy;
    EXPECT_TRUE(fs::exists(word.starts_with('/') ? word : SOURCE_FOLDER "/docs/" + word)) << remedy;
  }
}

[[nodiscard]] inline Facts good_machine() {
  Facts facts;
  facts.system = {.name = "Debian GNU/Linux 12, Linux 6.1.0, glibc 2.36, x86_64",
                  .container = "",
                  .cpus = 16,
                  .memory = gib(64)};
  DriverFacts& driver = facts.driver;
  driver.driver.file = "/lib/libcuda.so.1";
  driver.driver.version = 13000;
  driver.driver.devices = {{.number = 0, .name = "NVIDIA H100", .total = gib(80), .free = gib(79)}};
  driver.kernel_module = "580.65.06";
  driver.has_files = true;
  driver.toolkit = 13000;
  driver.cublas.path = "/lib/libcublas.so.13";
  driver.cupti.path = "/lib/libcupti.so.13";
  facts.library = {.path = "/lib/weir/libweir.so",
                   .problem = "",
                   .version = "0.1.0",
                   .command_version = "0.1.0",
                   .plugs = {"2.9", "2.15"}};
  PythonFacts& python = facts.python;
  python.version = "3.11.2";
  python.executable = "/usr/bin/python3";
  python.packages = {{"CuPy", "14.2.0"}, {"JAX", "0.10.2"}};
  python.trial = {.end = Trial::End::kLoaded, .program = "Python 3.11.2"};
  python.torch = TorchFacts{.version = preload::TorchVersion{2, 15, true, "2.15.0+cu130"},
                            .has_cuda = true,
                            .abi = preload::CxxAbi::kCxx11,
                            .plug = "libweir_torch_2.15.so",
                            .plug_exists = true,
                            .plug_unfit = ""};
  facts.limits.open_files = 1'048'576;
  facts.limits.open_files_at_most = 1'048'576;
  facts.limits.shared_memory = gib(32);
  return facts;
}

/// One changed fact, and the finding that follows from it.
struct Case {
  std::function<void(Facts&)> change;
  std::string check;
  State state;
  std::string text;    ///< a part of it
  std::string remedy;  ///< a part of it
  std::vector<Use> breaks{};
};

/// A change that sets these variables.
[[nodiscard]] inline std::function<void(Facts&)> with(Variables variables) {
  return [variables = std::move(variables)](Facts& facts) { facts.variables = variables; };
}

/// Checks that the case has exactly one finding of its kind that fits, and that all its findings
/// keep the rules: what is not ok has a remedy, what fails breaks something, and a remedy names
/// nothing that is not there.
inline void expect_finding(const Case& one, const std::string& pages) {
  SCOPED_TRACE(one.check + ": " + one.text);
  Facts facts = good_machine();
  facts.pages = pages;
  one.change(facts);
  const std::vector<Finding> findings = check_all(facts);
  const auto fits = [&](const Finding& finding) {
    return finding.check == one.check && finding.state == one.state &&
           finding.text.find(one.text) != std::string::npos &&
           finding.remedy.find(one.remedy) != std::string::npos && finding.breaks == one.breaks;
  };
  std::string all;
  for (const Finding& finding : findings) {
    const bool is_ok = finding.state == State::kOk;
    all += finding.check + " " + std::string(to_string(finding.state)) + ": " + finding.text +
           " | " + finding.remedy + "\n";
    EXPECT_EQ(is_ok, finding.remedy.empty()) << finding.text;
    EXPECT_TRUE(!is_ok || finding.breaks.empty()) << finding.text;
    EXPECT_TRUE(finding.state != State::kFails || !finding.breaks.empty()) << finding.text;
    expect_what_it_names(finding.remedy, pages);
  }
  EXPECT_EQ(std::ranges::count_if(findings, fits), 1) << all;
}
inline void expect_findings(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    for (const std::string& pages : layouts()) expect_finding(one, pages);
  }
}

inline const std::vector<Use> kGpus{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kDeviceWork};
inline const std::vector<Use> kSwapIn{Use::kRun, Use::kPlug};
inline const std::vector<Use> kPlugAlone{Use::kPlug};

}  // namespace weir::cli::doctor::testing
