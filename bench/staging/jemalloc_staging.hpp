#pragma once

// A jemalloc arena over an upstream: the peer of the trainer's StagingBuffers.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "allocator/base/bytes.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir::bench {

/// Thread-safe. It never returns memory to the upstream before its end.
class JemallocStaging {
 public:
  /// Grows in steps of `growth`, or of one buffer if that is larger. `upstream` must outlive it,
  /// and its memory must be whole pages that no malloc knows.
  JemallocStaging(Upstream& upstream, Bytes growth);
  ~JemallocStaging();
  JemallocStaging(const JemallocStaging&) = delete;
  JemallocStaging& operator=(const JemallocStaging&) = delete;

  /// A buffer of at least `size`, on a page of its own; null if the upstream has no room.
  [[nodiscard]] void* allocate(Bytes size);
  void deallocate(void* buffer) noexcept;
  /// Bytes obtained from the upstream.
  [[nodiscard]] Bytes reserved() const;
  [[nodiscard]] std::uint64_t upstream_calls() const;

 private:
  struct Hooks;
  std::unique_ptr<Hooks> hooks_;
  unsigned index_ = 0;  ///< jemalloc's number for the arena
};

}  // namespace weir::bench
