#pragma once

// Finds the holders of memory: at a moment, and when an allocation fails.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/analysis/counters.hpp"

namespace weir::timeline {

/// The key by which blocks are summed.
enum class GroupBy : std::uint8_t {
  kLabel,  ///< the allocation's label
  kKind,   ///< the kind of its batch
  kSite,   ///< the allocation's call site
};

/// Returns the key of the blocks that have none of that kind: `no label`, `unknown place`.
[[nodiscard]] std::string_view key_without_name(GroupBy by) noexcept;
/// The key of the blocks whose batch is not known because they are older than the recording.
inline constexpr std::string_view kKeyFromBefore = "from before the recording";

/// A group of blocks with one key, and what it holds.
struct Holder {
  std::string key{};  ///< for people; `no label`, `no batch`, `unknown place` if there is none
  std::uint64_t bytes = 0;  ///< in blocks
  std::uint64_t requested = 0;
  std::uint64_t blocks = 0;
  std::uint64_t from_before = 0;  ///< part of `bytes` that was allocated before the recording began
  /// Not in `bytes`: freed, but not yet passed by the device. Assumes that the device passes the
  /// oldest frees first.
  std::uint64_t awaiting = 0;

  friend bool operator==(const Holder&, const Holder&) = default;
};
/// The holders at one moment.
struct Holding {
  std::uint64_t at = 0;
  bool known = true;         ///< no event was missing
  PoolCounts counts{};       ///< the pool's counts
  std::uint64_t budget = 0;  ///< the budget at that time
  /// By descending sum of held and awaiting bytes, then by key; at most `most`.
  std::vector<Holder> holders{};
  Holder others{};  ///< the sum of the rest, with key `other`
};
/// Returns a pool's holders at each of `times`, which must be sorted, after the events of that
/// time. One pass.
[[nodiscard]] std::vector<Holding> holders_at(const Index& index, const PoolInfo& pool,
                                              std::span<const std::uint64_t> times, GroupBy by,
                                              std::size_t most);

/// Returns whether any holder has a label, a kind of batch or a call site, whichever they are
/// summed by.
[[nodiscard]] bool has_names(const Holding& holding, GroupBy by);
/// Returns a sentence on what nothing at the peak was named by, and what names it; empty if all
/// three have names, or if nothing was held.
[[nodiscard]] std::string missing_names(const Holding& by_label, const Holding& by_kind,
                                        const Holding& by_site);

/// An allocation that failed, and the holders at that time.
struct Failure {
  std::uint64_t at = 0;
  std::uint16_t source = 0;
  std::uint64_t bytes = 0;  ///< requested
  std::uint64_t requested = 0;
  std::string label{};
  std::string site{};
  std::uint32_t batch = 0;
  std::string kind{};  ///< kind of the batch
  Holding holding{};   ///< by label
};
/// Returns the first `most` failures of a process.
[[nodiscard]] std::vector<Failure> failures(const Index& index, std::size_t most = 100,
                                            std::size_t holders = 10);

/// Memory that is reserved but unused.
struct Fragmentation {
  double at_peak = 0;             ///< 1 − peak allocated / peak reserved
  double held_at_peak = 0;        ///< 1 − peak allocated and awaiting / peak reserved
  double mean = 0;                ///< 1 − allocated / reserved, over time
  double waste = 0;               ///< 1 − requested / allocated, over time: lost to rounding
  std::uint64_t most_unused = 0;  ///< peak of reserved − allocated bytes
};
[[nodiscard]] Fragmentation fragmentation(const Index& index, const PoolInfo& pool);

}  // namespace weir::timeline
