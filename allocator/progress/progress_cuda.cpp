#include "allocator/progress/progress_cuda.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <string>

#include "allocator/base/error.hpp"
#include "allocator/progress/pause.hpp"

namespace weir {

StreamId CudaProgress::Ids::next() {
  if (given_ == kBlock) {
    blocks_.push_back(StreamId::next(kBlock).value);
    given_ = 0;
  }
  return {blocks_.back() + given_++};
}

bool CudaProgress::Ids::gave(StreamId id) const {
  const auto above = std::ranges::upper_bound(blocks_, id.value);
  if (above == blocks_.begin()) return false;
  return id.value - *std::prev(above) < (above == blocks_.end() ? given_ : kBlock);
}

StreamId CudaProgress::add(cudaStream_t stream, CudaWork work, CudaCompletion* completion) {
  if (stream == nullptr || stream == cudaStreamPerThread) {
    throw UsageError(
        "a default stream cannot be followed by this name, which means another one on each thread: "
        "follow cudaStreamLegacy");
  }
  const Lock lock(mutex_);
  const StreamId id = ids_.next();
  streams_.emplace(id, std::make_shared<FollowedCudaStream>(id, device_, stream, work, completion));
  return id;
}

void CudaProgress::remove(StreamId stream) {
  const auto followed = require(stream);
  do {
    (void)wait(followed->record(), {});
  } while (!followed->try_close());  // another thread recorded a point meanwhile
  forget(stream);
}

bool CudaProgress::remove_if_passed(StreamId stream) {
  const auto followed = require(stream);
  (void)followed->passed();
  if (!followed->try_close()) return false;
  forget(stream);
  return true;
}

void CudaProgress::forget(StreamId stream) {
  Lock lock(mutex_);
  const auto gone = streams_.extract(stream);
  lock.unlock();  // closing the stream takes its lock
}

void CudaProgress::fence(StreamId stream) {
  const auto followed = find(stream);
  if (followed != nullptr) followed->require_progress(followed->marked());
}

std::shared_ptr<FollowedCudaStream> CudaProgress::find(StreamId stream) const {
  const Lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second;
  if (ids_.gave(stream)) return nullptr;
  throw UsageError("stream " + std::to_string(stream.value) + " is not of this GPU");
}

std::shared_ptr<FollowedCudaStream> CudaProgress::require(StreamId stream) const {
  auto followed = find(stream);
  if (followed != nullptr) return followed;
  throw UsageError("stream " + std::to_string(stream.value) + " was removed");
}

Point CudaProgress::record(StreamId stream) {
  const auto followed = find(stream);
  return followed != nullptr ? followed->record() : Point{stream, 0};
}

std::uint64_t CudaProgress::passed(StreamId stream) {
  const auto followed = find(stream);
  // The highest sequence is for points that could not be recorded (Block::kUnrecorded).
  return followed != nullptr ? followed->passed() : std::numeric_limits<std::uint64_t>::max() - 1;
}

bool CudaProgress::wait(Point point, const WaitLimit& limit) {
  const auto followed = find(point.stream);
  if (followed == nullptr) return true;
  for (Pause pause(std::chrono::microseconds(500));; pause()) {
    if (followed->passed() >= point.sequence) return true;
    if (limit.over()) return false;
    followed->require_progress(point.sequence);
  }
}

void CudaProgress::make_wait(StreamId waiter, Point point) {
  const auto waiting = require(waiter);
  const auto followed = find(point.stream);
  if (followed != nullptr) followed->hold_back(*waiting, point.sequence);
}

std::size_t CudaProgress::streams() const {
  const Lock lock(mutex_);
  return streams_.size();
}

}  // namespace weir
