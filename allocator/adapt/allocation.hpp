#pragma once

/// @file
/// An owned block of a pool.

#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/pool.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// Owns a block and frees it in the order of its stream, without waiting: work enqueued so far may
/// still use the memory. The pool must outlive it. Not thread-safe; different blocks are
/// independent.
///
///   Allocation block{pool, mib(4), stream, "scratch"};
///   launch(block.data(), block.size(), stream);
class [[nodiscard]] Allocation {
 public:
  Allocation() noexcept = default;  ///< owns nothing
  /// Allocates `bytes` for later work on `stream`. Owns nothing for 0 bytes. `label` as in
  /// Pool::allocate. Throws OutOfMemory.
  Allocation(Pool& pool, Bytes bytes, StreamId stream, std::string_view label = {});
  /// Takes over the block at `data`, of `bytes`, which `pool` handed out; null: owns nothing.
  Allocation(Pool& pool, void* data, Bytes bytes, StreamId stream) noexcept;
  Allocation(Allocation&& other) noexcept;             ///< leaves `other` empty
  Allocation& operator=(Allocation&& other) noexcept;  ///< frees its own block first
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { reset(); }

  [[nodiscard]] void* data() const noexcept { return data_; }  ///< null if it owns nothing
  [[nodiscard]] Bytes size() const noexcept { return size_; }  ///< as requested
  [[nodiscard]] StreamId stream() const noexcept {
    return stream_;
  }  ///< in whose order it is freed
  /// Returns whether it owns a block.
  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }

  /// Records a use on `stream`: the free will wait for it. Does nothing if it owns nothing.
  void record_use(StreamId stream);
  /// Frees the block in the order of `stream` from now on, which counts as a use by that stream.
  void set_stream(StreamId stream) noexcept { stream_ = stream; }
  /// Frees the block now. A block that the pool cannot take back stays allocated, and a line on
  /// standard error says so.
  void reset() noexcept;
  /// Gives the block to the caller, who frees it with Pool::deallocate. Returns null if it owns
  /// nothing.
  [[nodiscard]] void* release() noexcept;

 private:
  Pool* pool_ = nullptr;
  void* data_ = nullptr;
  Bytes size_{};
  StreamId stream_{};
};

}  // namespace weir
