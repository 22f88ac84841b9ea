#pragma once

// A subject of replays: one of our pools or a peer's allocator.

#include <cstdint>
#include <functional>
#include <memory>

#include "allocator/base/bytes.hpp"
#include "allocator/progress/progress.hpp"

namespace weir::replay {

/// What an allocator holds now, as far as it reports.
struct Footprint {
  Bytes allocated;                 ///< allocated, after rounding; zero if not reported
  Bytes reserved;                  ///< obtained from the upstream
  Bytes largest_free;              ///< the largest block available without growing
  std::uint64_t driver_calls = 0;  ///< allocations, frees, maps and unmaps on the upstream
  std::uint64_t mapped_pages = 0;  ///< pages mapped by them
  std::uint64_t waits = 0;         ///< host waits for the device
};

class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;

  /// Allocates `bytes` (> 0) in the order of `stream`. Returns null if there is no memory.
  [[nodiscard]] virtual void* allocate(Bytes bytes, StreamId stream) = 0;
  /// Frees a block of `allocate(bytes, …)` in the order of `stream`.
  virtual void deallocate(void* pointer, Bytes bytes, StreamId stream) = 0;
  /// Notes that `stream` also uses `pointer`. Does nothing for allocators without such a call.
  virtual void record_use(void* pointer, StreamId stream) = 0;
  [[nodiscard]] virtual Footprint footprint() const = 0;
};

/// Makes an empty subject with `capacity` of device memory of its own.
using MakeSubject = std::function<std::unique_ptr<Subject>(Bytes capacity)>;

}  // namespace weir::replay
