#pragma once

// What the bytes of a block say. Pure: they are a stranger's, and any are read or refused.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/folder.hpp"

namespace weir::timeline {

/// A process that runs and publishes.
struct LiveProgram {
  std::uint32_t pid = 0;  ///< as the process itself knows it
  std::uint32_t uid = 0;  ///< who owns the block
  std::uint64_t started = 0;
  std::uint64_t pid_namespace = 0;
  std::string program{};  ///< a stranger's text, as the next
  std::vector<std::string> devices{};
  std::vector<LiveSample> samples{};         ///< oldest first, times ascending; may be empty
  std::vector<LiveDevice> device_figures{};  ///< the newest, by device
  LiveFolder folder{};                       ///< where its block lies
  std::string file{};                        ///< its name there
  std::uint64_t inode = 0;                   ///< of that file
};

/// A block, and `count` before and after it was read.
struct BlockCopy {
  LiveBlock block;
  std::uint64_t count_before = 0;
  std::uint64_t count_after = 0;
};

/// What a file is by its first bytes.
enum class BlockKind : std::uint8_t {
  kNone,          ///< no block
  kOtherVersion,  ///< one that another version of Weir wrote
  kCut,           ///< one of another size than it has
  kBlock,
};
/// `read` bytes of `block`'s beginning were there, of a file of `file_size`.
[[nodiscard]] BlockKind kind_of(const LiveBlock& block, std::size_t read,
                                std::uint64_t file_size) noexcept;

/// What a block of the kind kBlock says. At most kLiveHistory samples and kLiveDevices devices.
[[nodiscard]] LiveProgram program_of(const BlockCopy& copy, std::uint32_t uid);

/// Whether a program can have published these: sizes that devices have and that agree with each
/// other, each device once.
[[nodiscard]] bool has_possible_figures(const LiveProgram& program) noexcept;

/// Whether a file of that name may hold the block of the process `pid`: PID-TIME.live.
[[nodiscard]] bool is_name_of(std::string_view file, std::uint32_t pid);

}  // namespace weir::timeline
