#pragma once

// A machine on which everything works, and cases that change one fact of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "layouts.hpp"
#include "tools/weir/doctor/checks/checks.hpp"

namespace weir::cli::doctor::testing {

[[nodiscard]] inline Facts good_machine() {
  Facts facts;
  facts.system = {.os = "Debian GNU/Linux 12",
                  .kernel = "Linux 6.1.0",
                  .libc = "glibc 2.36",
                  .machine = "x86_64",
                  .container = "",
                  .cpus = 16,
                  .memory = gib(64)};
  DriverFacts& driver = facts.driver;
  driver.driver.file = "/lib/libcuda.so.1";
  driver.driver.version = 13000;
  driver.driver.devices = {{.number = 0, .name = "NVIDIA H100", .total = gib(80), .free = gib(79)}};
  driver.kernel_module = "580.65.06";
  driver.device_files = {
      {"/dev/nvidia-uvm", true}, {"/dev/nvidia0", true}, {"/dev/nvidiactl", true}};
  driver.toolkit = 13000;
  driver.nvml = {.path = "/lib/libnvidia-ml.so.1", .version = "580.65.06"};
  driver.cublas = {.path = "/lib/libcublas.so.13", .version = "13.0.2"};
  driver.cupti = {.path = "/lib/libcupti.so.13"};
  facts.library = {.path = "/lib/weir/libweir.so",
                   .problem = "",
                   .version = "0.1.0",
                   .command_version = "0.1.0",
                   .plugs = {"2.9", "2.15"},
                   .trial = {.end = Trial::End::kLoaded, .program = "cat"}};
  PythonFacts& python = facts.python;
  python.version = "3.11.2";
  python.executable = "/usr/bin/python3";
  python.trial = {.end = Trial::End::kLoaded, .program = "Python 3.11.2"};
  python.torch = TorchFacts{.version = preload::TorchVersion{2, 15, true, "2.15.0+cu130"},
                            .has_cuda = true,
                            .abi = preload::CxxAbi::kCxx11,
                            .plug = "libweir_torch_2.15.so",
                            .plug_exists = true,
                            .plug_unfit = ""};
  facts.settings.devices = driver.driver.devices;
  LimitsFacts& limits = facts.limits;
  limits.memory = gib(64);
  limits.max_mappings = 65530;
  limits.open_files = 1'048'576;
  limits.open_files_at_most = 1'048'576;
  limits.shared_memory = gib(32);
  limits.live_folder = "/run/user/1000/weir";
  limits.temporary = "/tmp";
  facts.environment.plugs = facts.library.plugs;
  return facts;
}

/// One changed fact, and the finding that follows from it.
struct Case {
  std::string name;
  void (*change)(Facts&);
  std::string check;
  State state;
  std::string text;    ///< a part of it
  std::string remedy;  ///< a part of it
  std::vector<Use> breaks;
};

/// Checks that the case has exactly one finding of its kind that fits, and that all its findings
/// keep the rules: what is not ok has a remedy, what fails breaks something, and a remedy names
/// nothing that is not there.
inline void expect_finding(const Case& one, const Places& places) {
  SCOPED_TRACE(one.name);
  Facts facts = good_machine();
  facts.places = places;
  one.change(facts);
  const std::vector<Finding> findings = check_all(facts);
  const auto fits = [&](const Finding& finding) {
    return finding.check == one.check && finding.state == one.state &&
           finding.text.find(one.text) != std::string::npos &&
           finding.remedy.find(one.remedy) != std::string::npos && finding.breaks == one.breaks;
  };
  std::string all;
  for (const Finding& finding : findings) {
    all += finding.check + " " + std::string(to_string(finding.state)) + ": " + finding.text +
           " | " + finding.remedy + "\n";
    EXPECT_EQ(finding.state == State::kOk, finding.remedy.empty()) << finding.text;
    if (finding.state == State::kFails) {
      EXPECT_FALSE(finding.breaks.empty()) << finding.text;
    }
    if (finding.state == State::kOk) {
      EXPECT_TRUE(finding.breaks.empty()) << finding.text;
    }
    expect_what_it_names(finding.remedy, places);
  }
  EXPECT_EQ(std::ranges::count_if(findings, fits), 1) << all;
}
inline void expect_finding(const Case& one) {
  for (const Places& places : layouts()) expect_finding(one, places);
}

/// The findings that name this variable or are the verdict on it.
[[nodiscard]] inline std::vector<Finding> about(const std::string& variable, const Facts& facts) {
  std::vector<Finding> found = check_all(facts);
  std::erase_if(found, [&](const Finding& finding) {
    return finding.setting != variable && finding.text.find(variable) == std::string::npos;
  });
  return found;
}

inline const std::vector<Use> kNothing{};
inline const std::vector<Use> kGpus{Use::kRun, Use::kPlug, Use::kTrainGpu, Use::kDeviceWork};
inline const std::vector<Use> kSwapIn{Use::kRun, Use::kPlug};
inline const std::vector<Use> kPlugAlone{Use::kPlug};

}  // namespace weir::cli::doctor::testing
