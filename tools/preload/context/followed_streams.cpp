#include "tools/preload/context/followed_streams.hpp"

#include <algorithm>
#include <utility>

#include "tools/preload/context/fence_due.hpp"

namespace weir::preload {
namespace {

template <typename Map>
auto* find_in(Map& streams, StreamId id) {
  const auto found = streams.find(id.value);
  return found != streams.end() ? &found->second : nullptr;
}

template <typename Key>
FollowedStream* find_in(const std::unordered_map<Key, FollowedStream*>& streams, Key key) {
  const auto found = streams.find(key);
  return found != streams.end() ? found->second : nullptr;
}

}  // namespace

FollowedStreams::FollowedStreams(StreamId everything, StreamId parked)
    : everything_(everything), parked_(parked) {
  streams_[everything_.value].id = everything_;
  (void)add(CU_STREAM_LEGACY, 0);
}

FollowedStream* FollowedStreams::find(StreamId id) { return find_in(streams_, id); }
const FollowedStream* FollowedStreams::find(StreamId id) const { return find_in(streams_, id); }
FollowedStream* FollowedStreams::find(CUstream handle) { return find_in(by_handle_, handle); }
FollowedStream* FollowedStreams::find_own() { return find_in(by_thread_, thread_number()); }

FollowedStream& FollowedStreams::add(CUstream handle, std::uint64_t owner) {
  ThreadEnded ended = owner != 0 ? end_of_this_thread() : nullptr;
  const StreamId id = StreamId::next();
  FollowedStream& its = streams_[id.value];
  its.id = id;
  its.handle = handle;
  its.owner = owner;
  its.ended = std::move(ended);
  if (owner != 0) {
    by_thread_.insert_or_assign(owner, &its);
  } else {
    by_handle_.insert_or_assign(handle, &its);
    changes_of_handles.fetch_add(1, std::memory_order_release);
  }
  return its;
}

StreamId FollowedStreams::find_or_add(CUstream handle) {
  const FollowedStream* const found = find(handle);
  if (found == nullptr) {
    unknown_ = true;
    return add(handle, 0).id;
  }
  last_found.streams = this;
  last_found.handle = handle;
  last_found.changes = changes_of_handles.load(std::memory_order_relaxed);
  last_found.id = found->id;
  return found->id;
}

void FollowedStreams::created(CUstream handle, bool blocking) {
  const bool unknown = std::exchange(unknown_, true);  // unless it is followed
  if (FollowedStream* const before = find(handle)) remove(*before);
  add(handle, 0).blocking = blocking;
  unknown_ = unknown;
}

void FollowedStreams::remove(FollowedStream& stream) noexcept {
  by_handle_.erase(stream.handle);
  changes_of_handles.fetch_add(1, std::memory_order_release);
  stream.removed = true;
}

FollowedStream& FollowedStreams::park() {
  FollowedStream& its = streams_[parked_.value];
  its.id = parked_;
  return its;
}

bool FollowedStreams::is_parked(Point point) const {
  const FollowedStream* const its = point.stream == parked_ ? find(parked_) : nullptr;
  if (its == nullptr || ended_ || its->queue.passed() >= point.sequence) return false;
  const auto& fences = its->queue.fences();
  return fences.empty() || fences.back().sequence < point.sequence;
}

std::uint32_t FollowedStreams::most_points(const FollowedStream& stream) const noexcept {
  return asks_all(stream) ? points_of_a_fence(streams_.size()) : kPointsOfAFence;
}

bool FollowedStreams::is_costly(StreamId stream) const noexcept {
  const FollowedStream* const found = find(stream);
  return found != nullptr && asks_all(*found) && found->queue.points() != 0 &&
         !pays(found->queue.points(), streams_.size());
}

std::size_t FollowedStreams::forget_gone() noexcept {
  const auto forgotten = [](const FollowedStream& stream) {
    return stream.gone() && stream.queue.idle() && !stream.unfenced;
  };
  std::size_t behind = 0;  // streams that are gone with work not passed
  // Ask `gone` once per stream: a thread can end at any time, and is gone from then on.
  for (auto each = streams_.begin(); each != streams_.end();) {
    if (!forgotten(each->second)) {
      if (each->second.gone()) ++behind;
      ++each;
      continue;
    }
    by_thread_.erase(each->second.owner);
    each = streams_.erase(each);
  }
  // Room for enough new streams that the next search costs each little, but for fewer than are
  // behind, or these would grow without end behind a slow device.
  const std::size_t live = streams_.size() - behind;
  return forget_at_ = streams_.size() + std::max({kFewStreams, live, behind / 4});
}

void FollowedStreams::forget_passed() noexcept {
  std::erase_if(streams_, [](const auto& each) {
    const FollowedStream& stream = each.second;
    return stream.removed && stream.queue.fences().empty();
  });
}

}  // namespace weir::preload
