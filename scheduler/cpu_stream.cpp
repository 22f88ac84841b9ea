#include "scheduler/cpu_stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir {
namespace {

thread_local bool serves_device = false;

}  // namespace

bool on_device_thread() noexcept { return serves_device; }

std::string_view to_string(StreamRole role) noexcept {
  constexpr std::array<std::string_view, kStreamRoles> kNames{"compute", "compute-2", "copy-in",
                                                              "copy-out"};
  return kNames.at(index_of(role));
}

CpuStream::CpuStream(StreamRole role)
    : Stream(StreamId::next(), role), ring_(64), worker_([this] { serve(); }) {}

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
  const std::uint64_t end = enqueued_.load(std::memory_order_relaxed);
  if (end - taken_ == ring_.size()) {
    std::vector<Entry> larger(ring_.size() * 2);
    for (std::uint64_t i = taken_; i != end; ++i) {
      larger[i % larger.size()] = ring_[i % ring_.size()];
    }
    ring_ = std::move(larger);
  }
  ring_[end % ring_.size()] = entry;
  enqueued_.store(end + 1, std::memory_order_release);
  const bool wake = asleep_;
  lock.unlock();
  if (wake) work_.notify_one();
  return end + 1;
}

bool CpuStream::wait(std::uint64_t sequence, const std::stop_token& stop) {
  if (passed() >= sequence) return true;
  Lock lock(mutex_);
  return passes_.wait(lock, stop, [&]() WEIR_REQUIRES(mutex_) {
    if (passed() >= sequence) return true;
    awaited_ = std::min(awaited_, sequence);
    return false;
  });
}

void CpuStream::serve() {
  serves_device = true;
  Lock lock(mutex_);
  for (;;) {
    asleep_ = true;
    while (taken_ == enqueued() && !closing_) work_.wait(lock);
    asleep_ = false;
    if (taken_ == enqueued()) return;
    const Entry entry = ring_[taken_++ % ring_.size()];
    lock.unlock();
    execute(entry);
    lock.lock();
    passed_.store(taken_, std::memory_order_release);
    if (taken_ >= awaited_) {
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
