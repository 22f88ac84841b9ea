#include "tools/timeline/analysis/submissions.hpp"

#include <tuple>

namespace weir::timeline {
namespace {

using Key = std::tuple<std::uint16_t, std::uint64_t>;

Key key_of(const TimelineRecord& record) {
  const bool ours = record.kind == TimelineKind::kSubmit || record.kind == TimelineKind::kExecute;
  return {ours ? record.source : std::uint16_t{0}, record.id};
}

std::vector<std::uint32_t> by_key(const Index& index, TimelineKind kind) {
  const auto places = index.of(kind);
  std::vector<std::uint32_t> sorted(places.begin(), places.end());
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return key_of(index.record(a)) < key_of(index.record(b));
  };
  if (!std::is_sorted(sorted.begin(), sorted.end(), before))
    std::stable_sort(sorted.begin(), sorted.end(), before);
  return sorted;
}

}  // namespace

Submissions::Submissions(const Index& index)
    : index_(&index),
      submits_(by_key(index, TimelineKind::kSubmit)),
      calls_(by_key(index, TimelineKind::kCall)) {}

const TimelineRecord* Submissions::of(const TimelineRecord& work) const {
  if (work.id == 0) return nullptr;
  const auto& places = work.kind == TimelineKind::kExecute ? submits_ : calls_;
  const Key key = key_of(work);
  // The first entry after all that have the key and began no later.
  const auto behind =
      std::upper_bound(places.begin(), places.end(), work, [&](const auto& w, std::uint32_t place) {
        const TimelineRecord& one = index_->record(place);
        return key != key_of(one) ? key < key_of(one) : w.begin < one.begin;
      });
  if (behind != places.begin() && key_of(index_->record(*(behind - 1))) == key)
    return &index_->record(*(behind - 1));
  if (behind != places.end() && key_of(index_->record(*behind)) == key)
    return &index_->record(*behind);
  return nullptr;
}

}  // namespace weir::timeline
