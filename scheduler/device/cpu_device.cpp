#include "scheduler/device/cpu_device.hpp"

#include <unistd.h>

#include <string>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir {

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

bool CpuDevice::wait(Point point, std::stop_token stop) {
  return find(point.stream).wait(point.sequence, stop);
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
