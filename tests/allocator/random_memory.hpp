#pragma once

// The random run's model of memory: which work may still touch which bytes. It is kept by ranges of
// addresses, because pools that split hand out parts.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>

namespace weir::testing {

inline constexpr std::size_t kRandomStreams = 4;
using Clock = std::array<std::uint64_t, kRandomStreams>;  ///< a place on each stream

/// Raises each place to at least that of `to`.
inline void raise(Clock& clock, const Clock& to) {
  for (std::size_t s = 0; s < clock.size(); ++s) clock.at(s) = std::max(clock.at(s), to.at(s));
}

/// Half open.
struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// All work ever enqueued on some bytes, by the last place on each stream.
struct Work {
  Clock uses{};
  Clock second_uses{};  ///< since the last allocation, on streams other than its own
  Clock frees{};        ///< the points of frees, on each stream of the freed block
};

/// Ranges with the same work.
class WorkByAddress {
 public:
  /// Calls `visit(Work&)` for each range within `where`, in order.
  template <typename Visit>
  void visit(AddressRange where, const Visit& visit) {
    cut(where.begin);
    cut(where.end);
    auto range = ranges_.lower_bound(where.begin);
    for (std::uintptr_t at = where.begin; at < where.end; at = range->second.end, ++range) {
      if (range != ranges_.end() && range->first == at) {
        visit(range->second.work);
        continue;
      }
      const std::uintptr_t next = range == ranges_.end() ? where.end : range->first;
      range = ranges_.emplace_hint(range, at, Range{std::min(next, where.end), {}});
      visit(range->second.work);
    }
  }
  /// Makes it one range with the latest work of its parts. Its current owner is behind all of that,
  /// so this blocks nobody additionally.
  Work& join(AddressRange where) {
    Work all;
    visit(where, [&](const Work& part) {
      raise(all.uses, part.uses);
      raise(all.second_uses, part.second_uses);
      raise(all.frees, part.frees);
    });
    const auto first = ranges_.lower_bound(where.begin);
    ranges_.erase(std::next(first), ranges_.lower_bound(where.end));
    first->second = {where.end, all};
    return first->second.work;
  }
  /// For a range that was joined and not cut since.
  [[nodiscard]] Work& at(std::uintptr_t begin) { return ranges_.at(begin).work; }

 private:
  struct Range {
    std::uintptr_t end = 0;
    Work work;
  };

  void cut(std::uintptr_t at) {
    const auto after = ranges_.upper_bound(at);
    if (after == ranges_.begin()) return;
    auto& [begin, range] = *std::prev(after);
    if (begin == at || range.end <= at) return;
    ranges_.emplace_hint(after, at, range);
    range.end = at;
  }

  std::map<std::uintptr_t, Range> ranges_;
};

}  // namespace weir::testing
