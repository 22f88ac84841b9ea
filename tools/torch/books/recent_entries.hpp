#pragma once

// The newest entries of a history.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::torch_plug {

/// Keeps the newest entries, in the order in which they were added. Thread-safe. The lock is a
/// leaf: entries that are dropped end after it, because an entry may end with Python objects.
template <typename Entry>
class RecentEntries {
 public:
  /// Keeps at most `most` entries from now on, at least one.
  void set_most(std::size_t most) {
    std::deque<Entry> dropped;
    const std::lock_guard lock(mutex_);
    most_ = std::max<std::size_t>(1, most);
    drop_above(most_, dropped);
  }

  /// Adds entries that stay next to each other.
  template <typename... Entries>
  void add(Entries... entries) {
    std::deque<Entry> dropped;
    const std::lock_guard lock(mutex_);
    (entries_.push_back(std::move(entries)), ...);
    drop_above(most_, dropped);
  }

  void clear() {
    std::deque<Entry> dropped;
    const std::lock_guard lock(mutex_);
    entries_.swap(dropped);
  }

  /// Returns copies of all, oldest first.
  [[nodiscard]] std::vector<Entry> all() const {
    const std::lock_guard lock(mutex_);
    return {entries_.begin(), entries_.end()};
  }

 private:
  /// Moves the oldest to `dropped`. It is declared before the lock and so ends after it.
  void drop_above(std::size_t most, std::deque<Entry>& dropped) {
    while (entries_.size() > most) {
      dropped.push_back(std::move(entries_.front()));
      entries_.pop_front();
    }
  }

  mutable std::mutex mutex_;
  std::size_t most_ = 1;       ///< guarded by mutex_
  std::deque<Entry> entries_;  ///< guarded by mutex_
};

/// Returns the entries of both in the order of `time_of`, at most the newest `most`. Entries of one
/// list with the same time stay in its order and next to each other.
template <typename Entry, typename Time>
[[nodiscard]] std::vector<Entry> merged(std::vector<Entry> some, std::vector<Entry> others,
                                        std::size_t most, Time time_of) {
  const auto earlier = [&time_of](const Entry& a, const Entry& b) {
    return time_of(a) < time_of(b);
  };
  std::stable_sort(some.begin(), some.end(), earlier);
  std::stable_sort(others.begin(), others.end(), earlier);
  std::vector<Entry> all;
  all.reserve(some.size() + others.size());
  std::merge(std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()),
             std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()),
             std::back_inserter(all), earlier);
  if (all.size() > most) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(most));
  return all;
}

}  // namespace weir::torch_plug
