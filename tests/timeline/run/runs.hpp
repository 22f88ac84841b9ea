#pragma once

// Recorded runs of weir-train, and their files.

#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../../trainer/temporary_directory.hpp"
#include "support/child_process.hpp"
#include "tools/timeline/analysis/index.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline::testing {

using weir::testing::Finished;
using Words = std::vector<std::string>;

/// The measured time of a run, on the clock of its timeline.
inline Span measured_span(const ProcessInfo& process, const nlohmann::json& result) {
  const auto since_zero = [&](const char* end) {
    return result["measured"][end].get<std::uint64_t>() - process.monotonic_ns;
  };
  return {since_zero("from_ns"), since_zero("to_ns")};
}

/// A separate folder for the test, and runs of the programs in it.
class RecordedRuns : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file(std::string_view name) const { return directory_.file(name); }

  /// A short run on the cpu, with `more` arguments.
  [[nodiscard]] static Words run_with(std::initializer_list<Words> more) {
    Words words{"run", "--device", "cpu", "--inputs", "ring", "--ring", "2"};
    for (const Words& some : more) words.insert(words.end(), some.begin(), some.end());
    return words;
  }
  [[nodiscard]] static Finished weir(const Words& words) {
    return weir::testing::ChildProcess(words, {.program = WEIR_PROGRAM}).wait();
  }
  [[nodiscard]] nlohmann::json figures(std::string_view name) const {
    return nlohmann::json::parse(weir::testing::read_file(file(name)));
  }
  /// The output of `weir timeline report --json` for the first process of a file.
  [[nodiscard]] nlohmann::json report(std::string_view name) const {
    const Finished report = weir({"timeline", "report", file(name), "--json", "-"});
    EXPECT_EQ(report.exit_code, 0) << report.err;
    return nlohmann::json::parse(report.out).at("processes").at(0);
  }

  const weir::testing::TemporaryDirectory directory_;
};

}  // namespace weir::timeline::testing
