#pragma once

// Timelines for tests of pages: one frontend without a limit, with a barrier after each batch, and
// throttled; one that runs out of memory; and malicious names.

#include <string>
#include <vector>

#include "timeline/support/made_timeline.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline::testing {

/// Loads faster than the device computes, so that inputs pile up without a limit.
[[nodiscard]] inline MadeOptions fast_loader() {
  MadeOptions options;
  options.batches = 60;
  options.layers = 3;
  options.load_ns = 500'000;
  options.operation_ns = 600'000;
  options.copy_ns = 700'000;
  options.budget = 128U << 20U;
  return options;
}
[[nodiscard]] inline Timeline unbounded_timeline() {
  MadeOptions options = fast_loader();
  options.run_ahead = 0;
  return made_timeline(options);
}
[[nodiscard]] inline Timeline barrier_timeline() {
  MadeOptions options = fast_loader();
  options.barrier_every = 1;
  return made_timeline(options);
}
[[nodiscard]] inline Timeline throttled_timeline() {
  MadeOptions options = fast_loader();
  options.run_ahead = 2;
  return made_timeline(options);
}
/// Has gaps of two causes, and barriers at two call sites.
[[nodiscard]] inline Timeline gaps_timeline() {
  MadeOptions options = fast_loader();
  options.run_ahead = 2;
  options.barrier_every = 4;
  options.slow_loads = {{20, 20'000'000}, {41, 30'000'000}};
  Timeline timeline = made_timeline(options);
  Process& process = timeline.processes.front();
  MadeNames names(process);
  const std::uint64_t end = process.records.back().end;
  process.records.push_back({.begin = end,
                             .end = end + 5'000'000,
                             .name = names("wait_all"),
                             .site = names("trainer/loop.py:99"),
                             .thread = 1,
                             .source = 1,
                             .kind = TimelineKind::kBarrier});
  return timeline;
}
/// Of 10^6 events and more.
[[nodiscard]] inline Timeline large_timeline() {
  MadeOptions options = fast_loader();
  options.run_ahead = 2;
  options.batches = 24'000;
  options.layers = 6;
  options.barrier_every = 100;
  return made_timeline(options);
}
[[nodiscard]] inline Timeline failing_timeline() {
  MadeOptions options = fast_loader();
  options.run_ahead = 0;
  options.fails_in = 31;
  Timeline timeline = made_timeline(options);
  timeline.processes.front().complete = false;
  timeline.processes.front().lost = 7;
  return timeline;
}

/// Possible names of a tensor, a file or a program.
[[nodiscard]] inline std::vector<std::string> harmful_names() {
  return {"</script><script>document.title='harmed'</script>",
          "<img src=x onerror=\"document.title='harmed'\">",
          "\"quotes' and `more` ${document.title='harmed'}",
          "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xe2\x80\xae right to left",
          std::string(10'000, 'x'),
          "line\xe2\x80\xa8separator\xe2\x80\xa9paragraph",
          "\xff\xfe not UTF-8",
          "<!--title--><!--data--> &amp; ]]>"};
}

/// A job of 64 ranks.
[[nodiscard]] inline Timeline ranks_timeline() {
  constexpr std::uint32_t kRanks = 64;
  Timeline timeline;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    timeline.processes.push_back(made_process({.seed = rank + 1, .batches = 4, .rank = rank}));
  return timeline;
}

/// Two processes whose every text is one of harmful_names().
[[nodiscard]] inline Timeline harmful_timeline() {
  Timeline timeline;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    MadeOptions options = fast_loader();
    options.batches = 8;
    options.barrier_every = 2;
    options.rank = rank;
    Process process = made_process(options);
    const std::vector<std::string> harmful = harmful_names();
    for (std::size_t i = 1; i < process.names.size(); ++i) {
      process.names[i] = harmful[(i - 1) % harmful.size()];
    }
    process.info.program = harmful.front();
    process.info.host = harmful[1];
    timeline.processes.push_back(std::move(process));
  }
  return timeline;
}

}  // namespace weir::timeline::testing
