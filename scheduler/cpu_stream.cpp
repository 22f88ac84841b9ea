#include "scheduler/cpu_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "scheduler/serves_device.hpp"

namespace weir {

CpuStream::CpuStream(StreamRole role)
    : Stream(StreamId::next(), role), worker_([this] { serve(); }) {}

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

bool CpuStream::wait(std::uint64_t sequence, const std::stop_token& stop) {
  if (passed() >= sequence) return true;
  Lock lock(mutex_);
  ++waiting_;
  const bool reached = passes_.wait(lock, stop, [&]() WEIR_REQUIRES(mutex_) {
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
    asleep_ = true;
    while (entries_.empty() && !closing_) work_.wait(lock);
    asleep_ = false;
    if (entries_.empty()) return;
    const Entry entry = entries_.pop_front();
    lock.unlock();
    execute(entry);
    lock.lock();
    const std::uint64_t sequence = passed() + 1;
    passed_.store(sequence, std::memory_order_release);
    if (sequence >= awaited_) {
      awaited_ = kNobody;  // those who sleep for a later one say so again
      passes_.notify_all();
    }
  }
}

void CpuStream::execute(const Entry& entry) {
  if (entry.task == nullptr) {
    (void)entry.other->wait(entry.sequence, {});
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  entry.task->run(*this);
  const auto took = std::chrono::steady_clock::now() - start;
  busy_.fetch_add(took.count(), std::memory_order_relaxed);
  entry.task->finished(took);
}

}  // namespace weir
