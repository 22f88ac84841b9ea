#pragma once

// Streams as the index of a pool's blocks knows them, and who may have a free block.

#include <cstddef>
#include <cstdint>

#include "allocator/index/block.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// What is known of a stream and waits for it.
struct StreamState {
  StreamId stream;
  std::uint64_t passed = 0;
  std::uint64_t last = 0;  ///< highest recorded sequence that a block carries
  /// Owners that blocks name, and blocks that are used on the stream, too: it is not forgotten
  /// before there are none.
  std::uint64_t users = 0;
  BlockList<&Block::by_stream> awaiting;
  BlockList<&Block::by_age> unpassed;  ///< cached, in the order of the points of their frees

  // In the list of those that something waits for.
  bool pending = false;
  StreamState* before = nullptr;
  StreamState* after = nullptr;
};

/// The streams that have points not known to be passed, or points to be recorded, in the order in
/// which they came to have some. Others cost no walk over streams anything.
class PendingStreams {
 public:
  [[nodiscard]] StreamState* front() const noexcept { return first_; }
  void add(StreamState& state) noexcept {
    state.pending = true;
    state.before = last_;
    state.after = nullptr;
    (last_ != nullptr ? last_->after : first_) = &state;
    last_ = &state;
    ++count_;
  }
  void remove(StreamState& state) noexcept {
    state.pending = false;
    (state.before != nullptr ? state.before->after : first_) = state.after;
    (state.after != nullptr ? state.after->before : last_) = state.before;
    --count_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  StreamState* first_ = nullptr;
  StreamState* last_ = nullptr;
  std::size_t count_ = 0;
};

/// Whose the cached blocks of one list, or of one set of bins, are: `home` may have them at once,
/// others when the device has passed the point of their free. Common ones are everybody's, and are
/// of no stream.
struct FreeOwner {
  StreamId home;
  StreamState* state = nullptr;  ///< of home
  std::uint64_t blocks = 0;      ///< that name this as their owner, in use or free

  [[nodiscard]] bool passed(const Block& block) const {
    return block.home_sequence <= state->passed;
  }
};

/// Keeps an owner from being forgotten, until as many calls of `let_go`.
inline void hold(FreeOwner& owner) noexcept {
  if (owner.blocks++ == 0) ++owner.state->users;
}
inline void let_go(FreeOwner& owner) noexcept {
  if (--owner.blocks == 0) --owner.state->users;
}

/// From now on `owner`, or nobody, is the block's.
inline void give_to(Block& block, FreeOwner* owner) noexcept {
  if (owner == block.owner) return;
  if (owner != nullptr) hold(*owner);
  if (block.owner != nullptr) let_go(*block.owner);
  block.owner = owner;
}

}  // namespace weir
