#pragma once

// Who holds memory: at a moment, over time, and for how long.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/timeline/analysis/counters.hpp"

namespace weir::timeline {

/// What blocks are summed by.
enum class GroupBy : std::uint8_t {
  kLabel,  ///< what the allocation was called
  kKind,   ///< the kind of its batch
  kSite,   ///< where the program asked for it
  kBatch,  ///< the batch
};

/// What some blocks have in common, and how much they hold.
struct Holder {
  std::string key{};  ///< for people; `no label`, `no batch`, `unknown place` where there is none
  std::uint64_t bytes = 0;  ///< of blocks
  std::uint64_t requested = 0;
  std::uint64_t blocks = 0;
  std::uint64_t from_before = 0;  ///< of `bytes`: handed out before the recording began
  /// Beside `bytes`: freed, and not yet passed by the device. Where it has passed a part, the
  /// oldest frees are taken for passed.
  std::uint64_t awaiting = 0;

  friend bool operator==(const Holder&, const Holder&) = default;
};
/// The holders at one moment.
struct Holding {
  std::uint64_t at = 0;
  bool known = true;         ///< no event was missing
  Books books{};             ///< the pool's
  std::uint64_t budget = 0;  ///< in force then
  /// The largest sum of held and awaiting first, alike ones by key; at most `most`.
  std::vector<Holder> holders{};
  Holder others{};  ///< the rest, summed; its key is `other`
};
/// The holders of a pool at each of `times`, which are in order, after what happened then. One
/// pass.
[[nodiscard]] std::vector<Holding> holders_at(const Index& index, const PoolInfo& pool,
                                              std::span<const std::uint64_t> times, GroupBy by,
                                              std::size_t most);

/// An allocation that nothing could serve, and who held the memory then.
struct Failure {
  std::uint64_t at = 0;
  std::uint16_t source = 0;
  std::uint64_t bytes = 0;  ///< of the block
  std::uint64_t requested = 0;
  std::string label{};
  std::string site{};
  std::uint32_t batch = 0;
  std::string kind{};  ///< of the batch
  Holding holding{};   ///< by label
};
/// The first `most` of a process.
[[nodiscard]] std::vector<Failure> failures(const Index& index, std::size_t most = 100,
                                            std::size_t holders = 10);

/// One block from its allocation to its free.
struct Lifetime {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;
  Span span{};               ///< to the end of what is known where it is never freed
  bool freed = false;        ///< a free was seen
  bool from_before = false;  ///< handed out before the recording began
  std::uint32_t name = 0;
  std::uint32_t site = 0;
  std::uint32_t batch = 0;
  std::uint32_t kind = 0;  ///< of the batch, of the process's names
};
/// The `most` blocks of a pool that hold the most bytes times nanoseconds, by begin.
[[nodiscard]] std::vector<Lifetime> lifetimes(const Index& index, const PoolInfo& pool,
                                              std::size_t most);

/// What is allocated over time, by key. All layers have a value at each time; at each time they add
/// up to what was allocated.
struct Stack {
  struct Layer {
    std::string key{};
    std::vector<std::uint64_t> values{};  ///< one for each of `at`
  };
  std::vector<std::uint64_t> at{};
  std::vector<Layer> layers{};            ///< the highest peak first; `other` last, where needed
  std::vector<std::uint64_t> awaiting{};  ///< freed, not yet passed
  std::vector<std::uint64_t> cached{};    ///< free
};
struct StackOptions {
  GroupBy by = GroupBy::kKind;
  std::size_t most = 8;  ///< layers beside `other`
  std::uint32_t columns = 2000;
};
/// Of each column at most four moments stay: the first, the lowest, the highest and the last of
/// what is allocated.
[[nodiscard]] Stack stacked(const Index& index, const PoolInfo& pool, Span span,
                            const StackOptions& options = {});

}  // namespace weir::timeline
