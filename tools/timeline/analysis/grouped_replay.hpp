#pragma once

// Sums a pool's allocated memory by a key while replaying its events.

#include <cstddef>
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
  struct Group {
    std::uint32_t key = 0;  ///< kFromBefore, or an index into the process's names
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
  /// The key as text for people.
  [[nodiscard]] std::string text(std::uint32_t key) const;

 private:
  static constexpr std::uint32_t kFromBefore = UINT32_MAX;

  [[nodiscard]] std::uint32_t key_of(const TimelineRecord& block) const;
  [[nodiscard]] std::size_t group_of(const TimelineRecord& block);
  /// Returns the index of its group.
  std::size_t take(const TimelineRecord& block);
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
  std::deque<Waiting> waiting_;  ///< in the order of the frees
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace weir::timeline
