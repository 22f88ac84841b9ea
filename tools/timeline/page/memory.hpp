#pragma once

// One pool over time: stacked by label, batch kind and call site, and who held it.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/timeline/page/blocks.hpp"
#include "tools/timeline/page/series.hpp"

namespace weir::timeline {

/// What held memory is stacked by. Every block has a key in each.
enum class Keying : std::uint8_t { kLabel, kKind, kSite };
inline constexpr std::size_t kKeyings = 3;
/// Keys with a colour of their own; all others share one.
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

/// A block, as long as it lived. Name, site and kind are numbers of the process's names.
struct BlockLife {
  Block block;
  std::uint64_t end = 0;  ///< the end of the timeline, and 1 more, where nothing freed it
};
/// A time for which all of the largest blocks are known.
struct Moment {
  std::uint64_t time = 0;
  std::uint64_t blocks = 0;  ///< alive
  std::uint64_t bytes = 0;   ///< in them
};

/// What is drawn of one pool.
struct MemoryPicture {
  std::string name;
  std::uint16_t source = 0;
  bool host = false;
  bool driver = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> budget;  ///< time and bytes
  /// The keys that have a series, from the bottom up; numbers of the process's names. After them
  /// in the series comes one for all others.
  std::array<std::vector<std::uint32_t>, kKeyings> keys;
  Series series;
  std::uint64_t peak = 0;        ///< of held bytes
  std::uint64_t peak_time = 0;   ///< its first time
  std::vector<BlockLife> lives;  ///< by begin and id: the largest at each moment
  std::vector<Moment> moments;   ///< in order; empty: every block is in `lives`
};

/// How much a picture keeps.
struct MemoryDetail {
  std::uint32_t columns = 8192;  ///< of the series
  std::uint32_t moments = 2048;  ///< at most this many
  std::uint32_t largest = 12;    ///< blocks at each moment
  std::uint32_t lives = 20000;   ///< a timeline with no more blocks than this keeps them all
};

/// `also` are times that have to be among the moments, in order.
[[nodiscard]] MemoryPicture picture_of(const Process& process, const PoolRecords& pool,
                                       const BatchKinds& kinds, std::uint64_t duration,
                                       const MemoryDetail& detail,
                                       const std::vector<std::uint64_t>& also = {});

/// The same picture with half of its moments, and the blocks that those need.
void halve_moments(MemoryPicture& picture, std::uint32_t largest);

/// Returns the blocks alive at `time`, the largest first, alike ones by begin and then by id; not
/// more than `most`.
[[nodiscard]] std::vector<const BlockLife*> alive_at(const std::vector<BlockLife>& lives,
                                                     std::uint64_t time, std::size_t most);

}  // namespace weir::timeline
