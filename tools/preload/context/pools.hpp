#pragma once

// The pools of one context. With `auto` memory of cuMemAlloc comes from one and memory in stream
// order from another, made when it is first asked for; with a named kind all comes from one.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "allocator/base/mutex.hpp"
#include "allocator/memory_books.hpp"
#include "allocator/pool.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/upstream.hpp"
#include "tools/preload/report/settings.hpp"

namespace weir::preload {

/// A pointer is one pool's: whatever is asked of it is asked of that one. Figures are sums; each
/// pool's part of a sum is of one moment, the parts are not of the same. Thread-safe.
class Pools final : public MemoryBooks {
 public:
  Pools(DriverUpstream& upstream, Fences& fences, const Account& account, const Settings& settings);
  ~Pools() = default;
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  /// As Pool's, by the pool that serves `stream`.
  [[nodiscard]] void* try_allocate(Bytes bytes, StreamId stream, std::string_view label,
                                   Attempt& attempt);
  [[noreturn]] void fail(const Attempt& attempt);
  [[nodiscard]] std::optional<Bytes> block_size(Bytes bytes, StreamId stream) const noexcept;
  [[nodiscard]] std::optional<Freed> try_deallocate(void* pointer, StreamId stream);
  void record_use(void* pointer, StreamId stream);
  [[nodiscard]] std::optional<BlockInUse> find(const void* pointer) const;
  [[nodiscard]] std::optional<BlockInUse> find_around(const void* address) const;
  [[nodiscard]] std::optional<BlockInUse> give_away(void* pointer);

  void poll() override;
  /// Of all, the one whose fence was recorded first.
  [[nodiscard]] std::optional<Point> oldest_awaiting() const;
  [[nodiscard]] std::optional<Point> oldest_outstanding() const;
  /// Gives cached memory back until `keep` is what stays reserved of all together; how much.
  Bytes trim(Bytes keep = {});
  /// Gives back up to `need` bytes, but nothing of the pool that the calling thread asks for memory
  /// just now: that one releases what is in the way by itself.
  Bytes give_back(Bytes need);
  /// What `give_back` could give at most, once it is known how far the device has come.
  [[nodiscard]] Bytes spare();

  [[nodiscard]] std::uint16_t device() const noexcept override { return first_.device(); }
  [[nodiscard]] Pressure pressure() const override;
  /// Peaks are of the sums, as they were at the ends of calls, since the beginning.
  [[nodiscard]] Statistics statistics() const override;
  [[nodiscard]] Bytes budget() const override { return first_.budget(); }
  [[nodiscard]] std::string holders(std::size_t most) const override;
  /// Of all pools, also one that is still to come.
  void set_limits(Bytes budget, RunningOut running_out);

  // The pool of memory in stream order, by itself: what the program knows as its default pool.
  [[nodiscard]] Statistics in_order() const;
  void reset_peaks_in_order();
  /// As cuMemPoolTrimTo asks: until `keep` is what stays reserved of stream order. What cuMemFree
  /// freed goes back, too: a driver keeps none of it.
  void trim_to(Bytes keep);

  /// A pool, and what it serves.
  struct Part {
    std::string_view serves;  ///< `cuMemAlloc`, `stream order` or `all`
    const Pool* pool;
  };
  /// Those that there are; a null pool is one that nothing was asked of yet.
  [[nodiscard]] std::array<Part, 2> parts() const noexcept;

 private:
  [[nodiscard]] Pool* second() const noexcept { return second_.load(std::memory_order_acquire); }
  [[nodiscard]] Pool& serving(StreamId stream);
  [[nodiscard]] PoolKind kind_in_order();
  [[nodiscard]] Pool& make_second();
  /// The pools in the order in which a pointer that is freed on `stream` is looked for; null: none.
  [[nodiscard]] std::array<Pool*, 2> looked_through(StreamId stream) const noexcept;
  /// The same in any order.
  [[nodiscard]] std::array<Pool*, 2> all() const noexcept { return {&first_, second()}; }
  /// The pool in stream order; null where nothing was asked of it yet.
  [[nodiscard]] Pool* of_stream_order() const noexcept { return split_ ? second() : &first_; }
  [[nodiscard]] std::optional<Point> oldest(std::optional<Point> (Pool::*of_pool)() const) const;
  [[nodiscard]] Statistics sum() const;
  /// What the calling thread changed may be a peak of the sums.
  void note_peaks();

  DriverUpstream& upstream_;
  Fences& fences_;
  const Settings& settings_;
  const bool split_;  ///< two pools, or one for all
  const PoolOptions options_;
  mutable Pool first_;
  std::once_flag second_once_;
  std::unique_ptr<Pool> second_owner_;
  std::atomic<Pool*> second_{nullptr};
  mutable Mutex mutex_{LockRank::kLeaf};
  mutable Statistics peaks_ WEIR_GUARDED_BY(mutex_);  ///< of the sums; the gauges' peaks alone
};

}  // namespace weir::preload
