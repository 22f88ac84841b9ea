#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/bytes.hpp"
#include "allocator/index/block.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// A stream's progress, and the blocks that wait for it.
struct StreamState {
  StreamId stream;
  std::uint64_t passed = 0;
  std::uint64_t last = 0;  ///< highest sequence recorded for a block
  /// Owners that blocks refer to, and blocks in use on the stream; forgotten only at zero.
  std::uint64_t users = 0;
  using Awaiting = BlockList<&Block::by_stream>;
  using Unpassed = BlockList<&Block::by_age>;
  Awaiting awaiting;
  Unpassed unpassed;     ///< cached, in the order of their points
  Bytes unpassed_bytes;  ///< sum of `unpassed`

  // In PendingStreams.
  bool pending = false;
  StreamState* before = nullptr;
  StreamState* after = nullptr;

  void add_unpassed(Block& block) noexcept {
    unpassed.insert_sorted(block, [](const Block& b) { return b.home_sequence; });
    unpassed_bytes += block.size;
  }
  void remove_unpassed(Block& block) noexcept {
    unpassed.remove(block);
    unpassed_bytes -= block.size;
  }
};

/// Streams with points not known to be passed, or to be recorded, oldest first. Walks skip other
/// streams.
class PendingStreams {
 public:
  [[nodiscard]] StreamState* front() const noexcept { return first_; }
  void add(StreamState& state) noexcept {
    state.pending = true;
    state.before = last_;
    state.after = nullptr;
    (last_ != nullptr ? last_->after : first_) = &state;
    last_ = &state;
    set_size(size() + 1);
  }
  void remove(StreamState& state) noexcept {
    state.pending = false;
    (state.before != nullptr ? state.before->after : first_) = state.after;
    (state.after != nullptr ? state.after->before : last_) = state.before;
    set_size(size() - 1);
  }
  /// May be called without the lock.
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  void set_size(std::size_t size) noexcept { size_.store(size, std::memory_order_relaxed); }

  StreamState* first_ = nullptr;
  StreamState* last_ = nullptr;
  std::atomic<std::size_t> size_{0};
};

/// Owns the cached blocks of a list or set of bins. `home` may reuse them at once, others once the
/// device has passed their free. Common ones belong to no stream.
struct FreeOwner {
  StreamId home;
  StreamState* state = nullptr;  ///< of home
  std::uint64_t blocks = 0;      ///< blocks with this owner, in use or free

  [[nodiscard]] bool passed(const Block& block) const {
    return block.home_sequence <= state->passed;
  }
};

/// Keeps an owner from being forgotten until as many calls of `let_go`.
inline void hold(FreeOwner& owner) noexcept {
  if (owner.blocks++ == 0) ++owner.state->users;
}
inline void let_go(FreeOwner& owner) noexcept {
  if (--owner.blocks == 0) --owner.state->users;
}

/// A null `owner` means nobody.
inline void give_to(Block& block, FreeOwner* owner) noexcept {
  if (owner == block.owner) return;
  if (owner != nullptr) hold(*owner);
  if (block.owner != nullptr) let_go(*block.owner);
  block.owner = owner;
}

}  // namespace weir
