#include "allocator/progress_cuda.hpp"

#include <chrono>
#include <string>
#include <thread>

#include "allocator/error.hpp"

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

CudaProgress::~CudaProgress() {
  for (Entry* entry = entries_.load(); entry != nullptr;) {
    const std::unique_ptr<Entry> last(entry);
    entry = entry->next;
  }
}

StreamId CudaProgress::add(cudaStream_t stream, CudaWork work, CudaCompletion* completion) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    throw UsageError(
        "a default stream cannot be followed: it is another one on each thread or device");
  }
  const Lock lock(mutex_);
  CudaEvents& events = work == CudaWork::kMarked ? slept_on_ : asked_;
  auto* const entry = new Entry{{stream, work, events, completion}, {false}, entries_.load()};
  entries_.store(entry, std::memory_order_release);
  return entry->lane.id();
}

void CudaProgress::remove(StreamId stream) {
  Entry& entry = find(stream);
  (void)wait(entry.lane.record(), {});
  entry.removed.store(true);
}

CudaProgress::Entry& CudaProgress::find(StreamId stream) const {
  for (Entry* entry = entries_.load(std::memory_order_acquire); entry != nullptr;
       entry = entry->next) {
    if (entry->lane.id() == stream) return *entry;
  }
  throw UsageError("stream " + std::to_string(stream.value) + " is not of this GPU");
}

CudaLane& CudaProgress::lane(StreamId stream) const { return find(stream).lane; }

Point CudaProgress::record(StreamId stream) {
  Entry& entry = find(stream);
  if (entry.removed.load()) return {stream, entry.lane.marked()};
  return entry.lane.record();
}

std::uint64_t CudaProgress::passed(StreamId stream) { return find(stream).lane.passed(); }

bool CudaProgress::wait(Point point, std::stop_token stop) {
  CudaLane& lane = find(point.stream).lane;
  for (Pause pause;; pause()) {
    if (lane.passed() >= point.sequence) return true;
    if (stop.stop_requested()) return false;
    lane.require_progress(point.sequence);
  }
}

void CudaProgress::make_wait(StreamId waiter, Point point) {
  find(point.stream).lane.hold_back(find(waiter).lane, point.sequence);
}

}  // namespace weir
