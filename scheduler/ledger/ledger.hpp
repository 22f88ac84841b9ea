#pragma once

// What batches are charged, and what is learned from them. Each charge belongs to a ticket that is
// settled exactly once; the sum is zero when nothing runs. A data structure only: the user holds
// the lock and does the waiting.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/progress/progress.hpp"
#include "scheduler/device/stream.hpp"
#include "scheduler/ledger/batch_run.hpp"
#include "scheduler/ledger/ticket.hpp"

namespace weir {

/// A batch that a recorder knows and that settled while nothing was recorded.
struct SettledUnheard {
  std::uint32_t number = 0;   ///< of the batch in its process
  BatchKind* kind = nullptr;  ///< used until Ledger::unuse
  CallSite where;
  Bytes peak{};
  bool knew_close = false;  ///< the recorder knows that it was closed
};

class Ledger {
 public:
  /// A point that could not be recorded yet; see `unrecorded`.
  static constexpr std::uint64_t kUnrecorded = UINT64_MAX;

  /// Returns what is known of the kind. The caller counts as a user of it until it has opened a
  /// batch or calls `unuse`. May throw std::bad_alloc.
  [[nodiscard]] BatchKind& use(std::string_view name);
  void unuse(BatchKind& kind) noexcept { --kind.users; }
  /// Whenever twice kRememberedKinds are known, those are forgotten that nobody uses and that had
  /// none of so many last uses.
  static constexpr std::size_t kRememberedKinds = 1024;
  [[nodiscard]] std::size_t kinds() const noexcept { return kinds_.size(); }

  /// Returns what a batch of this kind is expected to hold: the kind's footprint, else the hint,
  /// else the most that a batch of any kind was seen to give back, which fades as new kinds settle,
  /// else nothing.
  static constexpr std::uint64_t kFadeKinds = 64;
  [[nodiscard]] std::optional<Bytes> expected(const BatchKind& kind,
                                              std::optional<Bytes> hint) const noexcept;

  /// Takes over the caller's use of `kind` if it returns.
  Ticket& open(BatchKind& kind, Bytes estimate, CallSite where = {}, std::uint32_t number = 0);
  void note_allocated(TicketRef ref, Bytes bytes);
  /// The open batch has waited for memory in an allocation that then failed or was made.
  void note_waited(TicketRef ref);
  /// Also for a closed or settled batch: it did not keep this memory.
  void note_freed(TicketRef ref, Bytes bytes, bool awaiting);
  /// Marks the batch as submitted; it has its points. Its charge becomes what it left awaiting.
  void close(Ticket& ticket, bool learn);
  /// Settles every submitted batch whose points are passed. Returns how many. Calls
  /// `done(const Ticket&)` for each of them, in closing order.
  template <typename Done>
  std::size_t settle(const std::array<std::uint64_t, kStreamRoles>& passed, const Done& done) {
    note_passed(passed);
    if (!std::exchange(has_news_, false)) return 0;
    const std::size_t count = std::erase_if(submitted_, [&](Ticket* ticket) {
      if (!pass(*ticket)) return false;
      done(std::as_const(*ticket));
      settle(*ticket);
      return true;
    });
    settled_ += count;
    return count;
  }
  std::size_t settle(const std::array<std::uint64_t, kStreamRoles>& passed) {
    return settle(passed, [](const Ticket&) {});
  }
  /// Takes what the device has passed off the queue, before it is settled. Older values are
  /// ignored.
  void note_passed(const std::array<std::uint64_t, kStreamRoles>& passed) noexcept;

  [[nodiscard]] bool is_open(TicketRef ref) const noexcept;
  [[nodiscard]] Bytes charge(const Ticket& ticket) const noexcept;
  /// Returns the sum over all tickets. Memory that submitted batches left awaiting counts up to
  /// `awaiting`, the bytes that await the device now.
  [[nodiscard]] Bytes charged(Bytes awaiting = {UINT64_MAX}) const noexcept;
  [[nodiscard]] Bytes unspent() const noexcept;  ///< reserved for open batches, not allocated yet
  [[nodiscard]] std::uint64_t open_count() const noexcept { return open_.size(); }
  /// Returns the serial of the oldest open batch for which memory is reserved; 0: there is none.
  [[nodiscard]] std::uint64_t oldest_kept() const noexcept;
  /// Returns how many open batches have lapsed.
  [[nodiscard]] std::uint64_t lapsed() const noexcept {
    return static_cast<std::uint64_t>(std::ranges::count(open_, true, &Ticket::lapsed));
  }
  [[nodiscard]] const std::vector<Ticket*>& open_tickets() const noexcept { return open_; }
  /// Reserves nothing more for it until it allocates again, and expects nothing of it any more.
  void lapse(Ticket& ticket) noexcept;
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_.size(); }
  /// In closing order.
  [[nodiscard]] const std::vector<Ticket*>& submitted_tickets() const noexcept {
    return submitted_;
  }
  /// Returns batches that settled while nothing was recorded, each once, for the recorder that
  /// knows them.
  [[nodiscard]] std::vector<SettledUnheard> take_settled_unheard();
  [[nodiscard]] Bytes allocated()
      const noexcept;  ///< by open batches and not freed: not live memory
  /// Returns the oldest open batch that was perhaps never closed, or null, and drops its
  /// reservation. Such a batch has allocated nothing while kManyBatches others were closed, nor for
  /// `patience` after an earlier call found that. The number alone is not enough: while one thread
  /// reads input or has no core, another can close hundreds of batches.
  static constexpr std::uint64_t kManyBatches = 16;
  [[nodiscard]] const Ticket* take_forgotten(std::chrono::steady_clock::time_point now,
                                             std::chrono::nanoseconds patience) noexcept;

  /// Returns how long a batch of this kind is expected to run on each stream: the kind's average,
  /// before its first batch has settled that of all batches.
  [[nodiscard]] const StreamTimes& expected_times(const BatchKind& kind) const noexcept {
    return kind.footprint ? kind.device_time : mean_times_;
  }
  /// Returns the longest queue of the streams that a batch of the kind uses.
  [[nodiscard]] StreamQueue queued(const BatchKind& kind) const noexcept;
  [[nodiscard]] std::uint64_t settled() const noexcept { return settled_; }
  /// Returns the point a held-back frontend waits for: not passed, on this stream if it is told,
  /// and of the batch a quarter into the queue. With fewer than four submitted that is the oldest.
  /// With many, waking for each batch would cost more than it gains, and three quarters remain
  /// queued. Nothing if no such point is known.
  [[nodiscard]] std::optional<Point> point_to_await(
      std::optional<std::size_t> role = std::nullopt) const noexcept;
  /// Returns the roles for which some submitted batch lacks its point. note_recorded supplies one.
  [[nodiscard]] StreamRoleSet unrecorded() const noexcept;
  /// `closed` is from before `point` was recorded: the point does not cover batches closed later.
  void note_recorded(std::size_t role, Point point, std::uint64_t closed) noexcept;
  [[nodiscard]] std::uint64_t closed() const noexcept { return closed_; }  ///< batches so far

 private:
  /// Takes what the device has passed off the queue. Returns whether that is all of it.
  bool pass(Ticket& ticket) noexcept;
  /// Takes the ticket's time on the stream off the queue.
  void dequeue(Ticket& ticket, std::size_t role) noexcept;
  void settle(Ticket& ticket);
  void learn_from(Ticket& ticket);
  void learn_times(const Ticket& ticket) noexcept;
  void keep_unheard(const Ticket& ticket) noexcept;
  void forget_kinds() noexcept;

  std::map<std::string, std::unique_ptr<BatchKind>, std::less<>> kinds_;
  BatchKind* last_kind_ = nullptr;  ///< that `kind` has returned: as a rule the next one, too
  Bytes most_given_back_;           ///< by a batch, fading with each new kind
  std::vector<std::unique_ptr<Ticket>> tickets_;  ///< owns the tickets; they are reused
  std::vector<Ticket*> free_;
  std::vector<Ticket*> open_;
  std::vector<Ticket*> submitted_;  ///< in closing order
  std::vector<SettledUnheard> settled_unheard_;
  StreamTimes queued_{};      ///< expected of open and submitted batches that are not passed
  StreamTimes mean_times_{};  ///< of all batches, moving
  std::array<std::uint64_t, kStreamRoles> passed_{};
  bool has_news_ = false;  ///< a batch got a point or was passed since the last settle
  std::uint64_t serials_ = 0;
  std::uint64_t uses_ = 0;  ///< of kinds
  std::uint64_t closed_ = 0;
  std::uint64_t settled_ = 0;
};

}  // namespace weir
