#pragma once

/// @file
/// std::pmr over a pool of host memory.

#include <cstddef>
#include <memory_resource>
#include <new>

#include "allocator/base/error.hpp"
#include "allocator/pool.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// What the standard library's interfaces throw in place of OutOfMemory. `what()` is its report.
class HostOutOfMemory final : public std::bad_alloc {
 public:
  /// Thrown by a HostMemoryResource.
  explicit HostOutOfMemory(const OutOfMemory& cause) noexcept
      : cause_(cause) {}  // NOLINT(bugprone-throw-keyword-missing): kept, not thrown
  /// Returns the pool's report.
  [[nodiscard]] const char* what() const noexcept override { return cause_.what(); }
  /// Returns the pool's own error, with its figures.
  [[nodiscard]] const OutOfMemory& cause() const noexcept { return cause_; }

 private:
  OutOfMemory cause_;
};

/// The memory of a pool for containers of std::pmr. The pool's upstream is of memory that the host
/// can use: HostUpstream, MappedUpstream, PinnedUpstream.
///
///   HostUpstream upstream{gib(1)};
///   HostProgress progress;
///   Pool pool{{upstream, progress}};
///   HostMemoryResource resource{pool, progress.stream()};
///   std::pmr::vector<int> numbers{&resource};
///
/// Frees are in the order of one stream. So the resource of a stream that copies from pinned memory
/// may free that memory while the copy is queued.
///
/// Allocates at any alignment. Beyond Upstream::kAlignment a request takes the alignment and 512
/// bytes more. Throws HostOutOfMemory. Thread-safe; the pool must outlive it.
class HostMemoryResource final : public std::pmr::memory_resource {
 public:
  /// Allocates for `stream`, and frees in its order.
  HostMemoryResource(Pool& pool, StreamId stream) noexcept : pool_(pool), stream_(stream) {}
  HostMemoryResource(const HostMemoryResource&) = delete;
  HostMemoryResource& operator=(const HostMemoryResource&) = delete;
  ~HostMemoryResource() override = default;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* pointer, std::size_t bytes, std::size_t alignment) override;
  /// True for a resource of the same pool and stream.
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

  Pool& pool_;
  const StreamId stream_;
};

}  // namespace weir
