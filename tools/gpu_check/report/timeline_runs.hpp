#pragma once

// What tools/gpu_check/programs/record_all.py found: a PyTorch program under recordings, and beside
// other profilers.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::gpu_check {

/// The run of which a page is made.
inline constexpr const char* kRecordedSetup = "recorded";
/// Of the kernels that torch.profiler sees alone, how many it sees beside a recording if it works.
inline constexpr double kLeastProfiled = 0.99;

/// What `weir-gpu timeline count` says of a timeline.
struct RecordedActivity {
  double kernels = 0;
  double copies = 0;
  double lost = 0;
  bool complete = false;
};

struct RecordedRun {
  std::string setup;
  std::string left_out;          ///< why it was not run
  std::optional<int> exit_code;  ///< nothing: it was not started
  bool stopped = false;
  std::string said;                ///< the last line on standard error
  std::vector<std::string> lines;  ///< those on standard error that speak of a profiler
  std::vector<std::string> losses;
  double profiled_kernels = 0;  ///< that torch.profiler saw
  std::optional<RecordedActivity> activity;
  double page_bytes = 0;
  double other_report_bytes = 0;  ///< of nsys

  [[nodiscard]] bool finished() const { return exit_code == 0 && !stopped; }
  [[nodiscard]] std::string outcome() const;
  [[nodiscard]] std::string first_line() const;
};

struct RecordedRuns {
  std::string left_out;  ///< why none could be run
  std::vector<RecordedRun> runs;
  /// Null where there is none of that setup.
  [[nodiscard]] const RecordedRun* find(std::string_view setup) const;
};
/// Throws nlohmann's exception where it is something else.
[[nodiscard]] RecordedRuns read_recorded_runs(const nlohmann::json& figures);

}  // namespace weir::gpu_check
