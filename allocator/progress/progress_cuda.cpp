#include "allocator/progress/progress_cuda.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <string>
#include <thread>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

/// Between two looks at the device: at first at once, since waking a thread takes longer than many
/// an operation; then, where the wait is long, with pauses that cost next to no time of the host.
class Pause {
 public:
  void operator()() {
    if (std::chrono::steady_clock::now() < spin_until_) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  std::chrono::steady_clock::time_point spin_until_ =
      std::chrono::steady_clock::now() + std::chrono::microseconds(500);
};

}  // namespace

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
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    throw UsageError(
        "a default stream cannot be followed: it is another one on each thread or device");
  }
  CudaEvents& events = work == CudaWork::kMarked ? slept_on_ : asked_;
  const Lock lock(mutex_);
  const StreamId id = ids_.next();
  lanes_.emplace(id, std::make_shared<CudaLane>(id, stream, work, events, completion));
  return id;
}

void CudaProgress::remove(StreamId stream) {
  const auto lane = require(stream);
  do {
    (void)wait(lane->record(), {});
  } while (!lane->try_close());  // another thread recorded a point meanwhile
  Lock lock(mutex_);
  const auto gone = lanes_.extract(stream);
  lock.unlock();  // to end a lane takes its lock
}

std::shared_ptr<CudaLane> CudaProgress::find(StreamId stream) const {
  const Lock lock(mutex_);
  const auto found = lanes_.find(stream);
  if (found != lanes_.end()) return found->second;
  if (ids_.gave(stream)) return nullptr;
  throw UsageError("stream " + std::to_string(stream.value) + " is not of this GPU");
}

std::shared_ptr<CudaLane> CudaProgress::require(StreamId stream) const {
  auto lane = find(stream);
  if (lane != nullptr) return lane;
  throw UsageError("stream " + std::to_string(stream.value) + " was removed");
}

Point CudaProgress::record(StreamId stream) {
  const auto lane = find(stream);
  return lane != nullptr ? lane->record() : Point{stream, 0};
}

std::uint64_t CudaProgress::passed(StreamId stream) {
  const auto lane = find(stream);
  // The highest stands for a point that could not be recorded (Block::kUnrecorded).
  return lane != nullptr ? lane->passed() : std::numeric_limits<std::uint64_t>::max() - 1;
}

bool CudaProgress::wait(Point point, std::stop_token stop) {
  const auto lane = find(point.stream);
  if (lane == nullptr) return true;
  for (Pause pause;; pause()) {
    if (lane->passed() >= point.sequence) return true;
    if (stop.stop_requested()) return false;
    lane->require_progress(point.sequence);
  }
}

void CudaProgress::make_wait(StreamId waiter, Point point) {
  const auto waiting = require(waiter);
  const auto lane = find(point.stream);
  if (lane != nullptr) lane->hold_back(*waiting, point.sequence);
}

std::size_t CudaProgress::streams() const {
  const Lock lock(mutex_);
  return lanes_.size();
}

}  // namespace weir
