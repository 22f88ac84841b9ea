#pragma once

// Decodes a block. Pure. The bytes are untrusted: any input is decoded or refused.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// A running process that publishes.
struct LiveProgram {
  std::uint32_t pid = 0;  ///< in the process's own namespace
  std::uint32_t uid = 0;  ///< owner of the block
  std::uint64_t started = 0;
  std::uint64_t pid_namespace = 0;
  std::string program{};  ///< untrusted text, like the next
  std::vector<std::string> devices{};
  std::vector<LiveSample> samples{};         ///< oldest first, times ascending; may be empty
  std::vector<LiveDevice> device_figures{};  ///< the newest figures, by device
  LiveFolder folder{};                       ///< folder of its block
  std::string file{};                        ///< file name there
  std::uint64_t inode = 0;                   ///< inode of that file
};

/// A block, and `count` as read before and after it.
struct BlockCopy {
  LiveBlock block;
  std::uint64_t count_before = 0;
  std::uint64_t count_after = 0;
};

/// The type of a file by its first bytes.
enum class BlockKind : std::uint8_t {
  kNone,          ///< not a block
  kOtherVersion,  ///< a block of another Weir version
  kCut,           ///< a block of the wrong size
  kBlock,
};
/// Classifies a file of `file_size` bytes from the first `read` bytes in `block`.
[[nodiscard]] BlockKind kind_of(const LiveBlock& block, std::size_t read,
                                std::uint64_t file_size) noexcept;

/// Decodes a block of kind kBlock: at most kLiveHistory samples and kLiveDevices devices.
[[nodiscard]] LiveProgram program_of(const BlockCopy& copy, std::uint32_t uid);

/// Returns whether these figures are possible: sizes of real devices, consistent with each other,
/// and each device once.
[[nodiscard]] bool has_possible_figures(const LiveProgram& program) noexcept;

/// Returns whether a file name, PID-TIME.live, may be that of process `pid`.
[[nodiscard]] bool is_name_of(std::string_view file, std::uint32_t pid);

}  // namespace weir::timeline
