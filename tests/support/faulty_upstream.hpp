#pragma once

// Wraps an upstream: refuses or throws on demand, counts, and checks that no lock of ours is held
// in a call. Its pages are behind a FaultyPageSource.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "support/fault.hpp"
#include "support/faulty_page_source.hpp"
#include "support/level.hpp"

namespace weir::testing {

class FaultyUpstream final : public Upstream {
 public:
  /// A returned segment, in order of return.
  struct Returned {
    void* pointer;
    Bytes size;
  };

  explicit FaultyUpstream(Upstream& inner) : inner_(inner) {}

  [[nodiscard]] void* allocate(Bytes size) override {
    EXPECT_EQ(held_lock_ranks(), 0U) << "allocate was called while a lock is held";
    if (before_allocate) before_allocate(size);
    {
      const std::lock_guard lock(mutex_);
      ++calls_;
      const bool throws = throwing_.strikes();
      const bool refuses = !throws && refusing_.strikes();
      struck_ += throws || refuses ? 1 : 0;
      if (throws) throw std::runtime_error("upstream: a fault on demand");
      if (refuses) return nullptr;
    }
    void* pointer = inner_.allocate(size);
    if (pointer == nullptr) return nullptr;
    if (after_allocate) after_allocate(pointer, size);
    const std::lock_guard lock(mutex_);
    ++segments_;
    used_.rise(size.count);
    return pointer;
  }

  void deallocate(void* pointer, Bytes size) noexcept override {
    EXPECT_EQ(held_lock_ranks(), 0U) << "deallocate was called while a lock is held";
    if (before_deallocate) before_deallocate(pointer, size);
    {
      // Before the segment is inner's again: otherwise a late subtraction could raise our peak.
      const std::lock_guard lock(mutex_);
      --segments_;
      used_.fall(size.count);
      if (keep_returned_) returned_.push_back({pointer, size});
    }
    inner_.deallocate(pointer, size);
    if (after_deallocate) after_deallocate(size);
  }

  void begin_release() noexcept override {
    ++returns_begun_;
    ++returns_;
  }
  void end_release() noexcept override { EXPECT_GE(--returns_, 0); }
  /// Returns of memory that have begun and not ended, and all.
  [[nodiscard]] int returns() const noexcept { return returns_; }
  [[nodiscard]] int returns_begun() const noexcept { return returns_begun_; }

  [[nodiscard]] Bytes capacity() const override { return inner_.capacity(); }
  [[nodiscard]] FaultyPageSource* pages() noexcept override {
    std::call_once(pages_once_, [this] {
      PageSource* const pages = inner_.pages();
      if (pages != nullptr) pages_.emplace(*pages, &used_);
    });
    return pages_ ? &*pages_ : nullptr;
  }

  void refuse_calls(Fault fault) {
    const std::lock_guard lock(mutex_);
    refusing_ = fault;
  }
  void throw_calls(Fault fault) {
    const std::lock_guard lock(mutex_);
    throwing_ = fault;
  }
  void forget_returned() {
    const std::lock_guard lock(mutex_);
    keep_returned_ = false;
  }

  /// Called without the fake's lock; set before other threads start.
  std::function<void(Bytes)> before_allocate;
  std::function<void(void*, Bytes)> after_allocate;
  std::function<void(void*, Bytes)> before_deallocate;
  std::function<void(Bytes)> after_deallocate;

  /// Calls of `allocate`, failed ones included.
  [[nodiscard]] std::uint64_t calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  [[nodiscard]] std::uint64_t segments() const {
    const std::lock_guard lock(mutex_);
    return segments_;
  }
  /// Number of failures on demand, those of pages included.
  [[nodiscard]] std::uint64_t struck() {
    const std::uint64_t of_pages = pages() != nullptr ? pages()->struck() : 0;
    const std::lock_guard lock(mutex_);
    return struck_ + of_pages;
  }
  /// Allocated bytes, pages included: now, and the peak.
  [[nodiscard]] Bytes used() const { return {used_.now()}; }
  [[nodiscard]] Bytes peak() const { return {used_.peak()}; }
  [[nodiscard]] std::vector<Returned> returned() const {
    const std::lock_guard lock(mutex_);
    return returned_;
  }

 private:
  Upstream& inner_;
  std::atomic<int> returns_ = 0;
  std::atomic<int> returns_begun_ = 0;
  mutable std::mutex mutex_;
  std::uint64_t calls_ = 0;
  std::uint64_t segments_ = 0;
  std::uint64_t struck_ = 0;
  Level used_;
  std::once_flag pages_once_;
  std::optional<FaultyPageSource> pages_;
  Fault refusing_;
  Fault throwing_;
  bool keep_returned_ = true;
  std::vector<Returned> returned_;
};

}  // namespace weir::testing
