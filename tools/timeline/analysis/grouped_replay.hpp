#pragma once

// Sums a pool's allocated memory by a key while replaying its events.

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/analysis/holders.hpp"

namespace weir::timeline {

class GroupedReplay {
 public:
  static constexpr std::size_t kNoGroup = SIZE_MAX;

  struct Group {
    std::uint32_t key = 0;  ///< kFromBefore, a batch, or an index into the process's names
    std::uint64_t bytes = 0;
    std::uint64_t requested = 0;
    std::uint64_t blocks = 0;
    std::uint64_t from_before = 0;
    std::uint64_t awaiting = 0;
  };

  GroupedReplay(const Index& index, const PoolInfo& pool, GroupBy by)
      : index_(&index), by_(by), replay_(index, pool) {}

  /// Moves to the next record. Returns false after the last.
  bool next();
  [[nodiscard]] const PoolReplay& replay() const noexcept { return replay_; }
  /// The groups in the order in which they first held memory; always the same order.
  [[nodiscard]] const std::vector<Group>& groups() const noexcept { return groups_; }
  /// Sum of all groups.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// The index in `groups()` of the group that gained memory with the record.
  [[nodiscard]] std::size_t grown() const noexcept { return grown_; }
  /// The index of the group that lost memory with the record.
  [[nodiscard]] std::size_t shrunk() const noexcept { return shrunk_; }
  /// The key as text for people.
  [[nodiscard]] std::string text(std::uint32_t key) const;

 private:
  static constexpr std::uint32_t kFromBefore = UINT32_MAX;

  [[nodiscard]] std::uint32_t key_of(const TimelineRecord& block) const;
  [[nodiscard]] std::size_t group_of(const TimelineRecord& block);
  void take(const TimelineRecord& block);
  void give(const TimelineRecord& block);
  /// Drops the oldest awaiting frees until the rest matches the pool's counts.
  void pass_oldest();

  /// Freed bytes that the device has not passed yet.
  struct Waiting {
    std::size_t group = 0;
    std::uint64_t bytes = 0;
  };

  const Index* index_;
  GroupBy by_;
  PoolReplay replay_;
  std::vector<Group> groups_;
  std::unordered_map<std::uint32_t, std::size_t> places_;
  std::uint64_t bytes_ = 0;
  std::deque<Waiting> waiting_;  ///< in the order of the frees
  std::uint64_t waiting_bytes_ = 0;
  std::size_t grown_ = kNoGroup;
  std::size_t shrunk_ = kNoGroup;
};

}  // namespace weir::timeline
