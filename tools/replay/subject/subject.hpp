#pragma once

// What a trace is replayed against: one of our pools, or a peer's allocator.

#include <cstdint>
#include <functional>
#include <memory>

#include "allocator/base/bytes.hpp"
#include "allocator/progress/progress.hpp"

namespace weir::replay {

/// What an allocator holds now, as far as it can tell.
struct Footprint {
  Bytes allocated;                 ///< handed out, after rounding; zero where it does not say
  Bytes reserved;                  ///< obtained from the upstream
  Bytes largest_free;              ///< the largest block that it could hand out without growing
  std::uint64_t driver_calls = 0;  ///< allocations, frees, maps and unmaps asked of the upstream
  std::uint64_t mapped_pages = 0;  ///< maps among them, in pages
  std::uint64_t waits = 0;         ///< waits on the host for the device
};

class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;

  /// Memory for `bytes` (> 0) in the order of `stream`; null where there is no more.
  [[nodiscard]] virtual void* allocate(Bytes bytes, StreamId stream) = 0;
  /// Frees what `allocate(bytes, …)` returned, in the order of `stream`.
  virtual void deallocate(void* pointer, Bytes bytes, StreamId stream) = 0;
  /// `pointer` is also used on `stream`. Those that cannot be told do nothing.
  virtual void record_use(void* pointer, StreamId stream) = 0;
  [[nodiscard]] virtual Footprint footprint() const = 0;
};

/// Makes a subject that has `capacity` of device memory to itself, and holds nothing.
using MakeSubject = std::function<std::unique_ptr<Subject>(Bytes capacity)>;

}  // namespace weir::replay
