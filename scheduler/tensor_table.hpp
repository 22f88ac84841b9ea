#pragma once

// The state behind the tensor handles of one scheduler: memory, last uses, and the error of the
// present contents.

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
#include "scheduler/dependencies.hpp"
#include "scheduler/tensor.hpp"
#include "scheduler/tensor_memory.hpp"

namespace weir {

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
