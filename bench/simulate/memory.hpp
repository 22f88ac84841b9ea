#pragma once

// The memory of a simulated device: a pool that never fragments. As in the real one, inputs come
// free when the device has passed their batch, and a working set that was freed may be used again
// by its own stream at once, or be handed over to the copy stream, which then waits for it.

#include <algorithm>
#include <cstdint>
#include <deque>

#include "allocator/base/bytes.hpp"
#include "allocator/pressure.hpp"

namespace weir::simulate {

class Memory {
 public:
  explicit Memory(Bytes budget) noexcept : budget_(budget) {}

  [[nodiscard]] Bytes budget() const noexcept { return budget_; }
  /// Bytes that anything still needs.
  [[nodiscard]] Bytes used() const noexcept { return used_with(work_); }
  [[nodiscard]] Bytes peak() const noexcept { return peak_; }
  void reset_peak() noexcept { peak_ = used(); }
  /// The most bytes that could not be handed out: without working sets that are freed.
  [[nodiscard]] Bytes held_peak() const noexcept { return held_peak_; }
  /// Returns what admission is told. A freed working set counts as cached, not as held.
  [[nodiscard]] Pressure pressure() const noexcept {
    return {.held = apart() + work_, .budget = budget_, .awaiting = awaiting_};
  }

  /// Inputs, or outputs that are kept. Returns false if they do not fit now.
  [[nodiscard]] bool take(Bytes bytes) noexcept {
    if (used() + bytes > budget_) return false;
    allocated_ += bytes;
    note_peak();
    return true;
  }
  /// Inputs that do not fit, in memory of freed working sets if that has room for all of them:
  /// their copy has to wait for all computes up to `last`. Returns false if it has not. As in
  /// weir's pools: pages that a stream still uses stay where they are, so a block cannot have both
  /// such pages and new ones.
  [[nodiscard]] bool take_over(Bytes bytes, std::uint64_t last) {
    if (used() + bytes <= budget_ || pending_.empty()) return false;
    if (bytes > minus_or_zero(cached(), work_)) return false;
    handed_.push_back({last, bytes});
    handed_bytes_ += bytes;
    allocated_ += bytes;
    note_peak();
    return true;
  }
  /// A working set. Returns false if it does not fit now.
  [[nodiscard]] bool take_work(Bytes bytes) noexcept {
    if (used_with(work_ + bytes) > budget_) return false;
    work_ += bytes;
    note_peak();
    return true;
  }
  /// Undoes `take` or `take_work`: nothing has used the memory.
  void drop(Bytes bytes) noexcept { allocated_ -= bytes; }
  void drop_work(Bytes bytes) noexcept { work_ -= bytes; }

  /// The host frees what batch `sequence` has used; the device has not computed it yet.
  void free_behind(std::uint64_t sequence, Bytes inputs, Bytes work) {
    allocated_ -= inputs;
    awaiting_ += inputs;
    work_ -= work;
    while (!pending_.empty() && pending_.back().bytes <= work) pending_.pop_back();
    pending_.push_back({sequence, work});
  }
  /// As free_behind for outputs that were kept; `passed`: the device is done with them.
  void free_kept(Bytes bytes, bool passed) noexcept {
    allocated_ -= bytes;
    if (!passed) awaiting_ += bytes;
  }
  /// The device has computed batch `sequence`, behind which `bytes` awaited.
  void pass(std::uint64_t sequence, Bytes bytes) noexcept {
    awaiting_ -= bytes;
    while (!pending_.empty() && pending_.front().sequence <= sequence) pending_.pop_front();
    while (!handed_.empty() && handed_.front().sequence <= sequence) {
      handed_bytes_ -= handed_.front().bytes;
      handed_.pop_front();
    }
  }

 private:
  struct Pending {
    std::uint64_t sequence;
    Bytes bytes;
  };

  [[nodiscard]] Bytes apart() const noexcept { return allocated_ + awaiting_; }
  /// Returns the memory that the compute stream keeps for working sets: as much as the largest
  /// pending one, less what was handed over. A later working set needs its whole size.
  [[nodiscard]] Bytes cached() const noexcept {
    Bytes most;
    for (const Pending& pending : pending_) {
      const bool is_later = handed_.empty() || pending.sequence > handed_.back().sequence;
      most = std::max(most, is_later ? pending.bytes : minus_or_zero(pending.bytes, handed_bytes_));
      if (is_later) break;  // the others are smaller
    }
    return most;
  }
  [[nodiscard]] Bytes used_with(Bytes work) const noexcept {
    return apart() + std::max(work, cached());
  }
  void note_peak() noexcept {
    peak_ = std::max(peak_, used());
    held_peak_ = std::max(held_peak_, apart() + work_);
  }

  const Bytes budget_;
  Bytes allocated_{};  ///< inputs and kept outputs
  Bytes awaiting_{};
  Bytes work_{};
  std::deque<Pending> pending_;  ///< freed working sets; each is larger than all behind it
  std::deque<Pending> handed_;   ///< parts of pending working sets
  Bytes handed_bytes_{};
  Bytes peak_{};
  Bytes held_peak_{};
};

}  // namespace weir::simulate
