#pragma once

// Reads what this machine's processes publish. Files are untrusted: any contents are read or
// skipped, in bounded time and memory.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/block_text.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// A file that is not trusted although a running process has it, or nobody could have made it that
/// way.
struct LiveFault {
  std::string path{};
  std::string what{};  ///< such as `is cut`
};

struct LiveSurvey {
  std::vector<LiveProgram> programs{};  ///< by pid
  std::size_t unreadable = 0;           ///< running processes with a block of another version
  std::vector<LiveFault> faults{};
};

/// Reads the folders, at most 4096 entries of each.
[[nodiscard]] LiveSurvey read_live(std::span<const LiveFolder> folders);

/// Returns whether a running process has the file mapped.
[[nodiscard]] bool is_locked_block(int descriptor) noexcept;

/// Removes the files that ended processes of this user left in a folder.
void remove_ended(const LiveFolder& folder) noexcept;

// Computes recent rates from a block's history. Pure.

/// Rates over the last samples. A counter goes back when a pool, scheduler or device ends; its rate
/// then covers the time since. Empty if there are too few samples since.
struct LiveRates {
  std::optional<double> batches;  ///< settled batches per second
  std::optional<double> stalls;   ///< per second
  std::optional<double> stalled;  ///< share of the time; above 1 if several frontends wait
  std::optional<double> idle;     ///< idle share of the compute stream, since a device reports it
};

/// `samples` are oldest first. Covers at most `window` before the last.
[[nodiscard]] LiveRates rates_of(std::span<const LiveSample> samples,
                                 std::chrono::nanoseconds window = std::chrono::seconds(5));

}  // namespace weir::timeline
