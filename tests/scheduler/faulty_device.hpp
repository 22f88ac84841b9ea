#pragma once

// A cpu device whose calls fail on demand. Each call checks the callers' duties: no lock of ours is
// held (except the order lock where that is allowed), no thread that serves the device waits, and
// nothing is awaited that was not submitted.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>

#include "allocator/base/mutex.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "support/fault.hpp"
#include "support/faulty_upstream.hpp"
#include "support/small_pages.hpp"

namespace weir::testing {

enum class DeviceCall : std::uint8_t { kRecord, kEnqueue, kMakeWait };
inline constexpr std::array kDeviceCalls{DeviceCall::kRecord, DeviceCall::kEnqueue,
                                         DeviceCall::kMakeWait};

class FaultyDevice final : public DeviceBackend, private Progress {
 public:
  /// `host_memory`: of the host upstream; the cpu device's own by default.
  explicit FaultyDevice(Bytes memory, std::optional<Bytes> host_memory = {})
      : inner_(memory), host_(memory), upstream_(host_) {
    if (host_memory) host_upstream_.emplace(*host_memory);
  }

  [[nodiscard]] std::string name() const override { return "faulty cpu"; }
  [[nodiscard]] FaultyUpstream& upstream() override { return upstream_; }
  [[nodiscard]] Upstream& host_upstream() override {
    return host_upstream_ ? *host_upstream_ : inner_.host_upstream();
  }
  [[nodiscard]] Progress& progress() override { return *this; }
  [[nodiscard]] StreamId stream(StreamRole role) const override { return inner_.stream(role); }
  [[nodiscard]] std::chrono::nanoseconds busy(StreamRole role) const override {
    return inner_.busy(role);
  }
  std::uint64_t enqueue(StreamRole role, Task& task) override {
    strike(DeviceCall::kEnqueue, "enqueue", at_once ? 0 : kOrderOnly);
    if (before_enqueue) before_enqueue();
    return inner_.enqueue(role, task);
  }

  [[nodiscard]] bool runs_in_enqueue() const noexcept override { return at_once; }
  void drain() noexcept override { inner_.drain(); }
  [[nodiscard]] bool copies_late(const void* host) const override {
    return !stages_copies && inner_.copies_late(host);
  }

  /// Makes the coming calls throw.
  void fail(DeviceCall call, Fault fault) {
    const std::lock_guard lock(mutex_);
    faults_.at(static_cast<std::size_t>(call)) = fault;
  }
  /// How often one did.
  [[nodiscard]] std::uint64_t struck() const {
    const std::lock_guard lock(mutex_);
    return struck_;
  }

  /// Called at the start of each wait on the host; set before other threads start.
  std::function<void(Point)> before_wait;
  /// Called before each point is recorded, as every free does; set before other threads start.
  std::function<void()> before_record;
  /// Called before each task is enqueued; set before other threads start.
  std::function<void()> before_enqueue;
  /// Runs closures in `enqueue`, like a GPU; set before anything is enqueued.
  bool at_once = false;
  /// Copies late only from memory that it knows, like a GPU.
  bool stages_copies = false;

  [[nodiscard]] std::uint64_t waits() const {
    const std::lock_guard lock(mutex_);
    return waits_;
  }
  /// Returns when `count` waits on the host have begun. Returns false if `unless` was set first and
  /// announced by `nudge`, so that a test of who has to wait fails and does not hang.
  bool await_waits(std::uint64_t count, const std::atomic<bool>* unless = nullptr) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waits_ >= count || (unless != nullptr && *unless); });
    return waits_ >= count;
  }
  void nudge() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

 private:
  static constexpr std::uint32_t kOrderOnly = 1U << static_cast<unsigned>(LockRank::kOrder);

  [[nodiscard]] Point record(StreamId stream) override {
    if (before_record) before_record();
    strike(DeviceCall::kRecord, "record", 0);
    return inner_.progress().record(stream);
  }
  [[nodiscard]] std::uint64_t passed(StreamId stream) override {
    EXPECT_EQ(held_lock_ranks(), 0U) << "passed was called while a lock is held";
    return inner_.progress().passed(stream);
  }
  [[nodiscard]] bool wait(Point point, const WaitLimit& limit) override {
    EXPECT_EQ(held_lock_ranks(), 0U) << "wait was called while a lock is held";
    EXPECT_FALSE(on_device_thread()) << "a thread that serves the device waits";
    EXPECT_LE(point.sequence, inner_.progress().record(point.stream).sequence)
        << "nobody has submitted this point";
    {
      const std::lock_guard lock(mutex_);
      ++waits_;
    }
    changed_.notify_all();
    if (before_wait) before_wait(point);
    return inner_.progress().wait(point, limit);
  }
  void make_wait(StreamId waiter, Point point) override {
    strike(DeviceCall::kMakeWait, "make_wait", kOrderOnly);
    EXPECT_LE(point.sequence, inner_.progress().record(point.stream).sequence)
        << "nobody has submitted this point";
    inner_.progress().make_wait(waiter, point);
  }

  void strike(DeviceCall call, const char* name, std::uint32_t allowed) {
    EXPECT_EQ(held_lock_ranks() & ~allowed, 0U) << name << " was called while a lock is held";
    const std::lock_guard lock(mutex_);
    if (!faults_.at(static_cast<std::size_t>(call)).strikes()) return;
    ++struck_;
    throw std::runtime_error(std::string(name) + ": a fault on demand");
  }

  CpuDevice inner_;
  std::optional<MappedUpstream> host_upstream_;
  SmallPagesUpstream host_;
  FaultyUpstream upstream_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Fault, kDeviceCalls.size()> faults_{};
  std::uint64_t struck_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace weir::testing
