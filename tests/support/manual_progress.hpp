#pragma once

// A device whose every step the test decides. Streams are counters: work, waits and recorded points
// enqueue an entry each, and the device passes what the test lets it pass. A wait on the host
// models a device that finishes submitted work in the order that make_wait asked for.
//
// Each call checks the real seam's demands on callers: no lock of ours is held, and nothing is
// awaited that was not submitted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/progress.hpp"
#include "support/fault.hpp"

namespace weir::testing {

class ManualProgress final : public Progress {
 public:
  struct Dependency {
    StreamId waiter;
    Point point;
    friend bool operator==(const Dependency&, const Dependency&) = default;
  };

  // The seam.

  [[nodiscard]] Point record(StreamId stream) override {
    expect_no_lock("record");
    Point point;
    {
      const std::lock_guard lock(mutex_);
      Stream& s = streams_[stream];
      ++records_;
      if (s.gone) throw std::runtime_error("record: the stream is gone");
      if (record_fault_.strikes()) throw std::runtime_error("record: a fault on demand");
      point = {stream, points_are_entries_ ? ++s.tail : s.tail};
    }
    if (after_record) after_record(point);
    return point;
  }

  [[nodiscard]] std::uint64_t passed(StreamId stream) override {
    expect_no_lock("passed");
    std::uint64_t passed = 0;
    {
      const std::lock_guard lock(mutex_);
      ++queries_;
      passed = streams_[stream].passed;
    }
    if (after_query) after_query(stream);
    return passed;
  }

  [[nodiscard]] bool wait(Point point, const WaitLimit& limit) override {
    expect_no_lock("wait");
    if (before_wait) before_wait(point);
    const std::lock_guard lock(mutex_);
    waits_.push_back(point);
    EXPECT_LE(point.sequence, streams_[point.stream].tail) << "nobody has submitted this point";
    if (wait_fault_.strikes()) throw std::runtime_error("wait: a fault on demand");
    if (limit.over()) return false;
    finish(point);
    return true;
  }

  void make_wait(StreamId waiter, Point point) override {
    expect_no_lock("make_wait", 1U << static_cast<unsigned>(LockRank::kOrder));
    const std::lock_guard lock(mutex_);
    EXPECT_LE(point.sequence, streams_[point.stream].tail) << "nobody has submitted this point";
    if (make_wait_fault_.strikes()) throw std::runtime_error("make_wait: a fault on demand");
    dependencies_.push_back({waiter, point});
    Stream& s = streams_[waiter];
    s.barriers.push_back({s.tail++, point});
  }

  // The test's control of the device.

  /// Enqueues work on `stream` and returns its place.
  Point enqueue(StreamId stream) {
    const std::lock_guard lock(mutex_);
    return {stream, ++streams_[stream].tail};
  }
  /// The device passes `point`, and before it what the point's stream was made to wait for.
  void pass(Point point) {
    const std::lock_guard lock(mutex_);
    finish(point);
  }
  /// The device passes everything enqueued so far on `stream`.
  void pass_all(StreamId stream) {
    const std::lock_guard lock(mutex_);
    finish({stream, streams_[stream].tail});
  }
  /// The device advances at most `steps` on `stream`, and stops at a point that it must wait for.
  void advance(StreamId stream, std::uint64_t steps) {
    const std::lock_guard lock(mutex_);
    Stream& s = streams_[stream];
    const std::uint64_t goal = std::min(s.tail, s.passed + steps);
    while (!s.barriers.empty() && s.barriers.front().place < goal) {
      const Barrier barrier = s.barriers.front();
      s.passed = std::max(s.passed, barrier.place);
      if (streams_[barrier.until.stream].passed < barrier.until.sequence) return;
      s.barriers.pop_front();
    }
    s.passed = std::max(s.passed, goal);
  }
  /// From now on a point is the place of the last entry, as on a device that counts its tasks: two
  /// points with nothing between them are equal, and that of an idle stream is passed at once.
  void record_without_entries() {
    const std::lock_guard lock(mutex_);
    points_are_entries_ = false;
  }
  /// Ends `stream`: its work is done, and no point can be recorded there any more.
  void destroy(StreamId stream) {
    const std::lock_guard lock(mutex_);
    finish({stream, streams_[stream].tail});
    streams_[stream].gone = true;
  }

  void fail_records(Fault fault) {
    const std::lock_guard lock(mutex_);
    record_fault_ = fault;
  }
  void fail_make_waits(Fault fault) {
    const std::lock_guard lock(mutex_);
    make_wait_fault_ = fault;
  }
  void fail_waits(Fault fault) {
    const std::lock_guard lock(mutex_);
    wait_fault_ = fault;
  }

  /// Called without the fake's lock; set before other threads start.
  std::function<void(Point)> after_record;
  std::function<void(StreamId)> after_query;
  std::function<void(Point)> before_wait;

  // What it saw.

  [[nodiscard]] std::uint64_t tail(StreamId stream) const {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? 0 : found->second.tail;
  }
  [[nodiscard]] std::uint64_t passed_by_device(StreamId stream) const {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream);
    return found == streams_.end() ? 0 : found->second.passed;
  }
  [[nodiscard]] std::uint64_t records() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }
  /// Calls of `passed` by the code under test.
  [[nodiscard]] std::uint64_t queries() const {
    const std::lock_guard lock(mutex_);
    return queries_;
  }
  [[nodiscard]] std::vector<Point> waits() const {
    const std::lock_guard lock(mutex_);
    return waits_;
  }
  [[nodiscard]] std::vector<Dependency> dependencies() const {
    const std::lock_guard lock(mutex_);
    return dependencies_;
  }
  /// The dependencies from `first` on, so that a long run can follow them.
  void dependencies_since(std::size_t first, std::vector<Dependency>& out) const {
    const std::lock_guard lock(mutex_);
    out.assign(dependencies_.begin() + static_cast<std::ptrdiff_t>(first), dependencies_.end());
  }

 private:
  /// The stream passes `place` only when `until` is passed.
  struct Barrier {
    std::uint64_t place;
    Point until;
  };
  struct Stream {
    std::uint64_t tail = 0;
    std::uint64_t passed = 0;
    std::deque<Barrier> barriers;
    bool gone = false;
  };

  static void expect_no_lock(const char* call, std::uint32_t allowed = 0) {
    EXPECT_EQ(held_lock_ranks() & ~allowed, 0U) << call << " was called while a lock is held";
  }

  void finish(Point point) {
    Stream& s = streams_[point.stream];  // a map: stays put while the recursion adds streams
    while (s.passed < point.sequence) {
      if (s.barriers.empty() || s.barriers.front().place >= point.sequence) {
        s.passed = point.sequence;
        break;
      }
      const Barrier barrier = s.barriers.front();
      s.barriers.pop_front();
      s.passed = std::max(s.passed, barrier.place);
      finish(barrier.until);
    }
  }

  mutable std::mutex mutex_;
  std::map<StreamId, Stream> streams_;
  std::uint64_t records_ = 0;
  std::uint64_t queries_ = 0;
  std::vector<Point> waits_;
  std::vector<Dependency> dependencies_;
  bool points_are_entries_ = true;
  Fault record_fault_;
  Fault make_wait_fault_;
  Fault wait_fault_;
};

}  // namespace weir::testing
