#pragma once

// The state behind the tensor handles of one scheduler: memory, last uses, and the error of the
// present contents.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/pool.hpp"
#include "allocator/slab_allocator.hpp"
#include "scheduler/admission/admission.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/stream.hpp"
#include "scheduler/tensor.hpp"

namespace weir {

// Allocates tensors from the pool, or small ones from a slab over it. Charges the allocating batch,
// and lets an allocation wait for other open batches before it fails.

/// The memory of one tensor, and what its release must know.
struct TensorBlock {
  void* data = nullptr;
  SlabAllocator::Slab* slab = nullptr;  ///< null: a block of the pool
  Bytes block{};                        ///< what the batch was charged for it
  StreamRole home = StreamRole::kCompute;
  TicketRef owner{};                         ///< the batch that allocated it
  std::array<bool, kStreamRoles> used_by{};  ///< streams other than home that used it
};

class TensorMemory {
 public:
  TensorMemory(Pool& pool, DeviceBackend& device, Admission& admission, Policy policy)
      : pool_(pool),
        device_(device),
        admission_(admission),
        policy_(policy),
        slabs_(pool, device.progress()) {}

  /// Returns memory for work on `home` from now on. Waits as the policy allows, for submitted work
  /// or for the grace, without a lock. Throws OutOfMemory, and Cancelled if `owner.stop` ended a
  /// wait or was requested before one.
  [[nodiscard]] TensorBlock allocate(Bytes bytes, StreamRole home, std::string_view label,
                                     const Owner& owner);
  /// Records that work on `role` is about to use it. A throw changes nothing. Calls for one
  /// allocation must not overlap.
  void note_use(TensorBlock& allocation, StreamRole role);
  /// Frees it in the order of every stream that used it.
  void release(const TensorBlock& allocation) noexcept;

 private:
  [[nodiscard]] TensorBlock try_allocate(Bytes bytes, StreamRole home, std::string_view label,
                                         Attempt& attempt);

  Pool& pool_;
  DeviceBackend& device_;
  Admission& admission_;
  const Policy policy_;
  SlabAllocator slabs_;
};

// Which earlier work an operation must wait for. Reads between two writes may overlap; a write
// waits for the reads before it; one stream runs in order anyway. Pure functions of a tensor's
// history; the scheduler calls them under its order lock.

/// A tensor's last uses, as sequences of the streams.
struct AccessHistory {
  std::uint64_t version = 0;  ///< number of writes
  StreamRole writer = StreamRole::kCompute;
  std::uint64_t write_sequence = 0;  ///< of the last write; meaningless at version 0
  std::array<std::uint64_t, kStreamRoles> read_sequences{};  ///< since that write; 0: none
};

/// For each stream, the sequence that must be passed first; 0: none.
using Waits = std::array<std::uint64_t, kStreamRoles>;

constexpr void wait_to_read(const AccessHistory& history, StreamRole role, Waits& waits) {
  if (history.version == 0 || history.writer == role) return;
  std::uint64_t& wait = waits.at(index_of(history.writer));
  wait = std::max(wait, history.write_sequence);
}

constexpr void wait_to_write(const AccessHistory& history, StreamRole role, Waits& waits) {
  wait_to_read(history, role, waits);
  for (const StreamRole reader : kAllRoles) {
    if (reader == role) continue;
    std::uint64_t& wait = waits.at(index_of(reader));
    wait = std::max(wait, history.read_sequences.at(index_of(reader)));
  }
}

constexpr void note_read(AccessHistory& history, StreamRole role, std::uint64_t sequence) {
  history.read_sequences.at(index_of(role)) = sequence;
}

constexpr void note_write(AccessHistory& history, StreamRole role, std::uint64_t sequence) {
  ++history.version;
  history.writer = role;
  history.write_sequence = sequence;
  history.read_sequences = {};
}

class TensorTable;

struct TensorState {
  TensorTable* table = nullptr;
  Shape shape;
  DType dtype = DType::kFloat32;
  std::array<char, 32> label{};
  std::atomic<std::uint32_t> handles{0};     ///< Tensor objects; at zero the memory is freed
  std::atomic<std::uint32_t> references{0};  ///< all handles count as one; plus operations in
                                             ///< flight
  /// Null until the first writer is submitted. Written under the scheduler's order lock, and once
  /// no handle is left.
  std::atomic<std::byte*> data{nullptr};
  TensorBlock memory;     ///< order lock
  AccessHistory history;  ///< order lock
  /// Streams whose running closure reads or writes the tensor, one bit each. Order lock.
  std::uint8_t being_read = 0;
  std::uint8_t being_written = 0;
  std::atomic<bool> failed{false};  ///< written in device order; then `error` is set
  std::exception_ptr error;         ///< of the present contents; the table's error lock
};

/// Owns the states. Outlives its scheduler while handles are left, whose memory is already freed.
/// Thread-safe; handles may end on other threads during the scheduler's destruction.
class TensorTable {
 public:
  /// `place` is the name of the device on which the tensors are.
  TensorTable(TensorMemory& memory, std::string place) noexcept
      : place_(std::move(place)), memory_(&memory) {}
  TensorTable(const TensorTable&) = delete;
  TensorTable& operator=(const TensorTable&) = delete;

  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  /// Returns a state with one handle, which the caller wraps.
  [[nodiscard]] TensorState& acquire(const Shape& shape, DType dtype, std::string_view label);
  /// Call when the last handle is gone: frees the memory now, in stream order.
  void drop_handles(TensorState& state) noexcept;
  void drop_reference(TensorState& state) noexcept;

  /// Call when the scheduler ends and the device is idle: frees what handles still hold; the last
  /// handle deletes the table. Waits for drop_handles calls that are freeing memory.
  void abandon() noexcept;

  // An operation's error moves to its outputs, in device order.
  void set_error(TensorState& state, const std::exception_ptr& error) noexcept;
  void clear_error(TensorState& state) noexcept;
  [[nodiscard]] std::exception_ptr error(const TensorState& state) const noexcept;
  /// Keeps the first error since the last call of wait_all.
  void note_first(const std::exception_ptr& error) noexcept;
  [[nodiscard]] std::exception_ptr take_first() noexcept;

 private:
  ~TensorTable() = default;

  const std::string place_;
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<std::unique_ptr<TensorState>> states_ WEIR_GUARDED_BY(mutex_);
  std::vector<TensorState*> free_ WEIR_GUARDED_BY(mutex_);
  std::atomic<TensorMemory*> memory_;      ///< null once `abandon` has begun
  std::atomic<std::uint32_t> freeing_{0};  ///< calls of drop_handles that may use `memory_`
  bool abandoned_ WEIR_GUARDED_BY(mutex_) = false;  ///< the last handle deletes the table
  std::exception_ptr first_error_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
