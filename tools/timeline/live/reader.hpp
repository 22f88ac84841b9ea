#pragma once

// What the processes of this machine publish, as whoever looks finds it. Files are strangers': any
// contents are read or passed over, in bounded time and memory.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// A process that runs and publishes.
struct LiveProgram {
  std::uint32_t pid = 0;  ///< as the process itself knows it
  std::uint32_t uid = 0;  ///< who owns the block
  std::uint64_t started = 0;
  std::string program{};  ///< a stranger's text, as the next
  std::vector<std::string> devices{};
  std::vector<LiveSample> samples{};  ///< oldest first, times ascending; may be empty
};

struct LiveSurvey {
  std::vector<LiveProgram> programs{};  ///< by pid
  std::size_t unreadable = 0;           ///< running processes whose block is of another version
};

/// Reads the folders. At most 4096 entries of each are looked at.
[[nodiscard]] LiveSurvey read_live(std::span<const LiveFolder> folders);

/// Removes what ended processes of this user left in a folder.
void remove_ended(const LiveFolder& folder) noexcept;

}  // namespace weir::timeline
