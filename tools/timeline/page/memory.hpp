#pragma once

// Pictures one pool over time: stacked by label, batch kind and call site, with its holders.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/timeline/page/blocks.hpp"
#include "tools/timeline/page/series.hpp"

namespace weir::timeline {

/// The key by which held memory is stacked. Every block has a key of each kind.
enum class Keying : std::uint8_t { kLabel, kKind, kSite };
inline constexpr std::size_t kKeyings = 3;
/// Keys with their own colour; all others share one.
inline constexpr std::size_t kKeysShown = 7;

/// The columns of MemoryPicture::series, before those of the stacks.
enum MemoryColumn : std::uint8_t {
  kTimeColumn,
  kHeldColumn,  ///< allocated + awaiting
  kReservedColumn,
  kRequestedColumn,
  kAllocatedColumn,
  kAwaitingColumn,
  kBatchColumn,
  kStackColumn,  ///< the first key of the first stack
};

/// A block and its lifetime. Name, site and kind are indices into the process's names.
struct BlockLife {
  Block block;
  std::uint64_t end = 0;  ///< one past the end of the timeline if it was never freed
};
/// A time at which all of the largest blocks are known.
struct Moment {
  std::uint64_t time = 0;
  std::uint64_t blocks = 0;  ///< number of live blocks
  std::uint64_t bytes = 0;   ///< their bytes
};

/// The picture of one pool.
struct MemoryPicture {
  std::string name;
  std::uint16_t source = 0;
  bool host = false;
  bool driver = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> budget;  ///< time and bytes
  /// The keys with their own series, from the bottom up, as indices into the process's names. The
  /// series of all others follows.
  std::array<std::vector<std::uint32_t>, kKeyings> keys;
  Series series;
  std::uint64_t peak = 0;        ///< of held bytes
  std::uint64_t peak_time = 0;   ///< when it is first reached
  std::vector<BlockLife> lives;  ///< by begin and id: the largest at each moment
  std::vector<Moment> moments;   ///< in order; empty: all blocks are in `lives`
};

/// How much detail a picture keeps.
struct MemoryDetail {
  std::uint32_t columns = 8192;  ///< columns of the series
  std::uint32_t moments = 2048;  ///< at most this many moments
  std::uint32_t largest = 12;    ///< number of blocks at each moment
  std::uint32_t lives = 20000;   ///< a timeline with at most this many blocks keeps all
};

/// `also` are required moments, in order.
[[nodiscard]] MemoryPicture picture_of(const Process& process, const PoolRecords& pool,
                                       const BatchKinds& kinds, std::uint64_t duration,
                                       const MemoryDetail& detail,
                                       const std::vector<std::uint64_t>& also = {});

/// Drops half of the moments, and the blocks that the others do not need.
void halve_moments(MemoryPicture& picture, std::uint32_t largest);

/// Returns the live blocks at `time`, by descending size, then by begin and id; at most `most`.
[[nodiscard]] std::vector<const BlockLife*> alive_at(const std::vector<BlockLife>& lives,
                                                     std::uint64_t time, std::size_t most);

}  // namespace weir::timeline
