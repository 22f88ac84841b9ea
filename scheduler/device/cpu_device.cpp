#include "scheduler/device/cpu_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "scheduler/device/serves_device.hpp"

namespace weir {

/// A moment on the clock of the figures and on the recorder's clock.
struct CpuStream::Moment {
  std::chrono::steady_clock::time_point time;
  std::uint64_t ticks = 0;

  /// Reads both clocks again if the thread lost its core in between. Otherwise the figures and the
  /// timeline would show different times for one task.
  explicit Moment(const TimelineSink* sink) noexcept : time(std::chrono::steady_clock::now()) {
    constexpr std::uint64_t kApart = 30'000;  // ticks: some 10 us
    constexpr int kTries = 4;
    for (int i = 0; sink != nullptr && i < kTries; ++i) {
      const std::uint64_t before = sink->now();
      time = std::chrono::steady_clock::now();
      ticks = sink->now();
      if (ticks - before < kApart) break;
    }
  }
};

CpuStream::CpuStream(StreamRole role, std::uint16_t source)
    : Stream(StreamId::next(), role), source_(source), worker_([this] { serve(); }) {}

CpuStream::~CpuStream() {
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  work_.notify_one();
  worker_.join();
}

void CpuStream::copy(void* to, const void* from, Bytes size) { std::memcpy(to, from, size.count); }

std::uint64_t CpuStream::push(Entry entry) {
  Lock lock(mutex_);
  entries_.push_back(entry);
  const std::uint64_t sequence = enqueued() + 1;
  enqueued_.store(sequence, std::memory_order_release);
  const bool wake = asleep_;
  lock.unlock();
  if (wake) work_.notify_one();
  return sequence;
}

bool CpuStream::wait(std::uint64_t sequence, const WaitLimit& limit) {
  if (passed() >= sequence) return true;
  Lock lock(mutex_);
  ++waiting_;
  const bool reached =
      passes_.wait_until(lock, limit.stop, limit.until, [&]() WEIR_REQUIRES(mutex_) {
        if (passed() >= sequence) return true;
        awaited_ = std::min(awaited_, sequence);
        return false;
      });
  --waiting_;
  return reached;
}

void CpuStream::serve() {
  const ServesDevice serves;
  Lock lock(mutex_);
  for (;;) {
    if (entries_.empty()) {
      const auto since = std::chrono::steady_clock::now();
      asleep_ = true;
      while (entries_.empty() && !closing_) work_.wait(lock);
      asleep_ = false;
      if (last_end_) starved_ += std::chrono::steady_clock::now() - since;
    }
    if (entries_.empty()) return;
    const Entry entry = entries_.pop_front();
    lock.unlock();
    execute(entry);
    lock.lock();
    const std::uint64_t sequence = passed() + 1;
    passed_.store(sequence, std::memory_order_release);
    if (sequence >= awaited_) {
      awaited_ = kNobody;  // those who sleep for a later one set it again
      lock.unlock();
      passes_.notify_all();
      lock.lock();
    }
  }
}

void CpuStream::wait_for(CpuStream& other, std::uint64_t sequence) {
  if (other.passed() >= sequence) return;
  const TimelineSlice slice;
  (void)other.wait(sequence, {});
  if (slice.sink() == nullptr) return;
  slice.write({.id = other.id().value,
               .stream = id().value,
               .name = slice.sink()->name(to_string(other.role())),
               .source = source_,
               .kind = TimelineKind::kStreamWait,
               .detail = static_cast<std::uint8_t>(role())});
}

void CpuStream::note(TimelineSink* sink, const Task& task, const Moment& from,
                     const Moment& to) const noexcept {
  if (sink == nullptr) return;
  const TaskInfo info = task.info();
  sink->write({.begin = from.ticks,
               .end = to.ticks,
               .id = info.operation,
               .bytes = info.bytes.count,
               .stream = id().value,
               .batch = info.batch,
               .name = sink->name(info.name),
               .site = sink->site(info.file, info.line),
               .source = source_,
               .kind = TimelineKind::kExecute,
               .detail = static_cast<std::uint8_t>(role())});
}

void CpuStream::execute(const Entry& entry) {
  if (entry.task == nullptr) {
    wait_for(*entry.other, entry.sequence);
    return;
  }
  TimelineSink* const sink = timeline_sink();
  const Moment start(sink);
  entry.task->run(*this);
  const Moment end(sink);
  const auto took = end.time - start.time;
  note(sink, *entry.task, start, end);
  busy_.fetch_add(took.count(), std::memory_order_relaxed);
  const auto gap = last_end_ ? start.time - *last_end_ : std::chrono::nanoseconds{};
  last_end_ = end.time;
  entry.task->finished(
      {.device_time = took, .gap = gap, .starved = std::exchange(starved_, {}), .end = end.time});
}

CpuDevice::CpuDevice(Bytes memory, std::unique_ptr<Upstream> upstream)
    : upstream_(upstream != nullptr ? std::move(upstream)
                                    : std::make_unique<HostUpstream>(memory)) {
  for (const StreamRole role : kAllRoles) {
    auto& stream = streams_.at(index_of(role));
    stream = std::make_unique<CpuStream>(role, number());
    ids_.at(index_of(role)) = stream->id();
  }
  enlist();
  if (TimelineSink* sink = timeline_sink()) record_live(*sink);
}

// Drain all streams before destroying any: their queues wait for each other's points.
CpuDevice::~CpuDevice() {
  leave();
  drain();
}

void CpuDevice::drain() noexcept {
  for (const auto& stream : streams_) (void)stream->wait(stream->enqueued(), {});
}

StreamId CpuDevice::stream(StreamRole role) const { return ids_.at(index_of(role)); }

CpuStream& CpuDevice::find(StreamId stream) const {
  for (std::size_t i = 0; i < kStreamRoles; ++i) {
    if (ids_[i] == stream) return *streams_[i];
  }
  throw UsageError("stream " + std::to_string(stream.value) + " is not of this cpu device");
}

std::uint64_t CpuDevice::enqueue(StreamRole role, Task& task) {
  return streams_.at(index_of(role))->enqueue(task);
}

std::chrono::nanoseconds CpuDevice::busy(StreamRole role) const {
  return streams_.at(index_of(role))->busy();
}

void CpuDevice::add_figures(LiveFigures& figures) const {
  figures.knows_busy = true;
  figures.busy += busy(StreamRole::kCompute);
}

void CpuDevice::record_live(TimelineSink& sink) {
  for (const auto& stream : streams_) {
    sink.write({.stream = stream->id().value,
                .name = sink.name(to_string(stream->role())),
                .source = number(),
                .kind = TimelineKind::kStream});
  }
}

Point CpuDevice::record(StreamId stream) { return {stream, find(stream).enqueued()}; }

std::uint64_t CpuDevice::passed(StreamId stream) { return find(stream).passed(); }

bool CpuDevice::wait(Point point, const WaitLimit& limit) {
  return find(point.stream).wait(point.sequence, limit);
}

void CpuDevice::make_wait(StreamId waiter, Point point) {
  find(waiter).enqueue_wait(find(point.stream), point.sequence);
}

Bytes machine_memory() {
  return Bytes{static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES))} *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Bytes default_host_memory() { return {machine_memory().count / 4}; }

Bytes default_cpu_memory() { return {machine_memory().count / 2}; }

}  // namespace weir
