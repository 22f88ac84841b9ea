#include "tools/timeline/analysis/lifetimes.hpp"

#include <algorithm>
#include <optional>

namespace weir::timeline {
namespace {

double weight(const Lifetime& life) {
  return static_cast<double>(life.bytes) * static_cast<double>(life.span.length());
}
/// The order of a heap with the lightest first.
bool heavier(const Lifetime& a, const Lifetime& b) { return weight(a) > weight(b); }

/// Keeps the heaviest.
class Heaviest {
 public:
  explicit Heaviest(std::size_t most) : most_(most) {}
  void add(const Lifetime& life) {
    if (most_ == 0) return;
    if (kept_.size() == most_) {
      if (weight(life) <= weight(kept_.front())) return;
      std::ranges::pop_heap(kept_, heavier);
      kept_.pop_back();
    }
    kept_.push_back(life);
    std::ranges::push_heap(kept_, heavier);
  }
  [[nodiscard]] std::vector<Lifetime> by_begin() {
    std::ranges::sort(kept_, [](const Lifetime& a, const Lifetime& b) {
      return a.span.begin != b.span.begin ? a.span.begin < b.span.begin : a.address < b.address;
    });
    return std::move(kept_);
  }

 private:
  std::size_t most_;
  std::vector<Lifetime> kept_;
};

Lifetime life_of(const Index& index, const TimelineRecord& block, std::uint64_t end, bool freed) {
  return {.address = block.id,
          .bytes = block.bytes,
          .requested = block.requested,
          .span = {block.begin, std::max(block.begin, end)},
          .freed = freed,
          .from_before = block.kind == TimelineKind::kLive,
          .name = block.name,
          .site = block.site,
          .batch = block.batch,
          .kind = index.kind_of_batch(block.batch)};
}

}  // namespace

std::vector<Lifetime> lifetimes(const Index& index, const PoolInfo& pool, std::size_t most) {
  Heaviest heaviest(most);
  std::vector<bool> ended(pool.records.size());
  // From the end, so that a block that is never freed meets its end before its begin: the next
  // kPool, or the end of the recording.
  std::uint64_t end = index.span().end;
  for (std::size_t i = pool.records.size(); i-- > 0;) {
    const TimelineRecord& record = index.record(pool.records[i]);
    const std::uint32_t before = pool.ends[i];
    if (before != PoolInfo::kNone) {
      const TimelineRecord& block = index.record(pool.records[before]);
      heaviest.add(life_of(index, block, record.begin, record.kind == TimelineKind::kFree));
      ended[before] = true;
    }
    const bool hands_out =
        record.kind == TimelineKind::kAllocate || record.kind == TimelineKind::kLive;
    if (hands_out && !ended[i]) heaviest.add(life_of(index, record, end, false));
    if (record.kind == TimelineKind::kPool || record.kind == TimelineKind::kPoolEnd)
      end = record.begin;
  }
  return heaviest.by_begin();
}

}  // namespace weir::timeline
