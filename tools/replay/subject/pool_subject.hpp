#pragma once

// One of our pools as a subject of replays.

#include <functional>
#include <memory>

#include "allocator/pool.hpp"
#include "tools/replay/subject/counted_upstream.hpp"
#include "tools/replay/subject/progress.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::replay {

/// Makes an upstream of that capacity.
using MakeUpstream = std::function<std::unique_ptr<Upstream>(Bytes capacity)>;

class PoolSubject final : public Subject {
 public:
  /// `options.budget` applies to the upstream's capacity. The device lags by `lag` operations; each
  /// call of allocate, deallocate and record_use is one operation.
  PoolSubject(std::unique_ptr<Upstream> upstream, PoolOptions options, std::uint64_t lag);

  [[nodiscard]] void* allocate(Bytes bytes, StreamId stream) override;
  void deallocate(void* pointer, Bytes bytes, StreamId stream) override;
  void record_use(void* pointer, StreamId stream) override;
  [[nodiscard]] Footprint footprint() const override;

  [[nodiscard]] const Pool& pool() const noexcept { return pool_; }
  /// The upstream's page size; 2 MiB if it has none.
  [[nodiscard]] Bytes page_size();
  /// See CountedUpstream::tell.
  void tell(std::function<void(const DriverEvent&)> listener) {
    upstream_.tell(std::move(listener));
  }

 private:
  ReplayProgress progress_;
  CountedUpstream upstream_;
  Pool pool_;
};

}  // namespace weir::replay
