#pragma once

// What the processes of this machine publish, as whoever looks finds it. Files are strangers': any
// contents are read or passed over, in bounded time and memory.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/timeline/live/block_text.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// A file of a folder that was not believed, though a process that runs has it, or nobody could
/// have made it so.
struct LiveFault {
  std::string path{};
  std::string what{};  ///< such as `is cut`
};

struct LiveSurvey {
  std::vector<LiveProgram> programs{};  ///< by pid
  std::size_t unreadable = 0;           ///< running processes whose block is of another version
  std::vector<LiveFault> faults{};
};

/// Reads the folders. At most 4096 entries of each are looked at.
[[nodiscard]] LiveSurvey read_live(std::span<const LiveFolder> folders);

/// Whether a process that runs has the file mapped.
[[nodiscard]] bool is_locked_block(int descriptor) noexcept;

/// Removes what ended processes of this user left in a folder.
void remove_ended(const LiveFolder& folder) noexcept;

}  // namespace weir::timeline
