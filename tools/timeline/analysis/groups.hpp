#pragma once

// What a pool has handed out, summed by a key, as one goes through its events.

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
    std::uint32_t key = 0;  ///< kFromBefore, or a batch, or one of the process's names
    std::uint64_t bytes = 0;
    std::uint64_t requested = 0;
    std::uint64_t blocks = 0;
    std::uint64_t from_before = 0;
    std::uint64_t awaiting = 0;
  };

  GroupedReplay(const Index& index, const PoolInfo& pool, GroupBy by)
      : index_(&index), by_(by), replay_(index, pool) {}

  /// To the next record; false behind the last.
  bool next();
  [[nodiscard]] const PoolReplay& replay() const noexcept { return replay_; }
  /// In the order in which they first held memory, which is the same each time.
  [[nodiscard]] const std::vector<Group>& groups() const noexcept { return groups_; }
  /// Of all groups.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// The group that the record gave memory to, as a place in `groups()`.
  [[nodiscard]] std::size_t grown() const noexcept { return grown_; }
  /// The group that the record took memory from.
  [[nodiscard]] std::size_t shrunk() const noexcept { return shrunk_; }
  /// The key for people.
  [[nodiscard]] std::string text(std::uint32_t key) const;

 private:
  static constexpr std::uint32_t kFromBefore = UINT32_MAX;

  [[nodiscard]] std::uint32_t key_of(const TimelineRecord& block) const;
  [[nodiscard]] std::size_t group_of(const TimelineRecord& block);
  void take(const TimelineRecord& block);
  void give(const TimelineRecord& block);
  /// Forgets the oldest of what awaits, but for as much as the books say.
  void pass_oldest();

  /// What a free left awaiting.
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
  std::deque<Waiting> waiting_;  ///< in the order of their frees
  std::uint64_t waiting_bytes_ = 0;
  std::size_t grown_ = kNoGroup;
  std::size_t shrunk_ = kNoGroup;
};

}  // namespace weir::timeline
