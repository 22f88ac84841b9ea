#pragma once

// What batches are charged, and what is learned from them. Each charge is owned by a ticket that is
// settled exactly once; the sum is zero when nothing runs. A data structure only: its user holds
// the lock and does the waiting.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/call_site.hpp"
#include "allocator/progress/progress.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

struct Ticket;
class TimelineSink;

/// Device time of each stream.
using StreamTimes = std::array<std::chrono::nanoseconds, kStreamRoles>;

/// What is known of the batches of one kind.
///
/// The footprint is the most that the next batch is expected to have allocated at one time:
/// - A batch shows its peak: the most that it had allocated and not freed. What it freed does not
///   count, though it may await the device: it comes free again by work that is submitted, and an
///   allocation that lacks it waits for that. So a device that is late makes no batch look larger.
/// - When the next batch of the kind settles, a batch also shows how much of its peak it gave back.
///   What it still holds then is kept state: weights, an optimizer's moments, a cache.
/// - The footprint is the larger of the last batch's peak and the decayed maximum of what was given
///   back. So state that one batch makes counts once and is forgotten with the next batch. A cache
///   that grows with every batch is expected to grow again. Double buffers, which the next batch
///   frees, are given back by the time that we look.
/// - Until a second batch has settled, kept state counts: the first batch's memory may be double
///   buffers as well as weights, and too low an estimate costs more than too high a one.
struct BatchKind {
  std::string name;
  std::optional<Bytes> footprint;   ///< see above; nothing before the first batch has settled
  std::optional<Bytes> given_back;  ///< decayed maximum; nothing before the second has settled
  StreamTimes device_time{};        ///< moving average
  Ticket* last = nullptr;           ///< the batch that settled last, until the next one does
};

/// One batch's charge.
struct Ticket {
  enum class State : std::uint8_t { kSettled, kOpen, kSubmitted };

  State state = State::kSettled;
  std::uint64_t serial = 0;  ///< never used twice, so a stale reference is told from a live one
  std::uint32_t number = 0;  ///< of the batch in its process, for timelines
  /// Who was told last that it is open, and that it was closed.
  struct {
    const TimelineSink* admission = nullptr;
    const TimelineSink* close = nullptr;
  } told{};
  BatchKind* kind = nullptr;
  CallSite where;              ///< that began it
  std::uint64_t producer = 0;  ///< that the estimate counts against in the line; 0: none
  Bytes estimate{};
  Bytes net{};               ///< allocated by the batch and not freed since, by whomever
  Bytes peak{};              ///< largest net while it was open
  Bytes awaiting{};          ///< freed while it was open, when the device was not done with it
  std::uint64_t closed = 0;  ///< its place in the order of closing
  std::uint64_t closed_before = 0;  ///< batches closed when it was opened, or allocated last
  /// When it was first found idle since then; see Ledger::take_forgotten.
  std::optional<std::chrono::steady_clock::time_point> found_idle{};
  bool learn = true;    ///< an abandoned batch says nothing about its kind
  bool lapsed = false;  ///< nothing is kept for it, until it allocates again
  /// The batch that operations may be submitted to, by its serial; 0 is none. The scheduler's.
  std::atomic<std::uint64_t> accepts{0};
  int enqueuing = 0;  ///< its closures that run now; the scheduler's order lock
  std::array<bool, kStreamRoles> touched{};
  std::array<Point, kStreamRoles> points{};  ///< of the touched streams, once closed
  /// Nanoseconds of each stream, added by the device's threads.
  std::array<std::atomic<std::int64_t>, kStreamRoles> device_time{};
};

/// A batch that a recorder knows of and that settled while nothing was recorded.
struct SettledUnheard {
  std::uint32_t number = 0;  ///< of the batch in its process
  const BatchKind* kind = nullptr;
  CallSite where;
  Bytes peak{};
  bool knew_close = false;  ///< the recorder knows that it was closed
};

/// A ticket as others remember it.
struct TicketRef {
  Ticket* ticket = nullptr;
  std::uint64_t serial = 0;

  /// Whether operations may be submitted to its batch.
  [[nodiscard]] bool accepts() const noexcept {
    return ticket != nullptr && ticket->accepts.load(std::memory_order_acquire) == serial;
  }
};

/// Whom memory and work are charged to, and what ends a wait for the memory.
struct Owner {
  TicketRef batch{};  ///< refers to none outside batches
  std::stop_token stop{};
};

class Ledger {
 public:
  /// A point that could not be recorded yet; see `unrecorded`.
  static constexpr std::uint64_t kUnrecorded = UINT64_MAX;

  [[nodiscard]] BatchKind& kind(std::string_view name);

  /// What a batch of this kind is expected to hold: its kind's footprint, before that the hint,
  /// before that as much as the largest known kind. Nothing when none is known.
  [[nodiscard]] std::optional<Bytes> expected(const BatchKind& kind,
                                              std::optional<Bytes> hint) const noexcept;

  Ticket& open(BatchKind& kind, Bytes estimate, CallSite where = {}, std::uint32_t number = 0);
  void note_allocated(TicketRef ref, Bytes bytes);
  /// Also of a batch that is closed or settled: it did not keep this.
  void note_freed(TicketRef ref, Bytes bytes, bool awaiting);
  /// The batch is submitted; `points` hold those of its touched streams. From now on its charge is
  /// what it left awaiting.
  void close(Ticket& ticket, const std::array<Point, kStreamRoles>& points, bool learn);
  /// Settles every submitted batch whose points are passed; how many.
  std::size_t settle(const std::array<std::uint64_t, kStreamRoles>& passed);

  [[nodiscard]] bool is_open(TicketRef ref) const noexcept;
  [[nodiscard]] Bytes charge(const Ticket& ticket) const noexcept;
  /// Sum over all tickets. Of what submitted batches left awaiting, no more than `awaiting` counts:
  /// what awaits the device now.
  [[nodiscard]] Bytes charged(Bytes awaiting = {UINT64_MAX}) const noexcept;
  [[nodiscard]] Bytes unspent() const noexcept;  ///< promised to open batches, not yet allocated
  [[nodiscard]] std::uint64_t open_count() const noexcept { return open_.size(); }
  /// Whether any batch is open but those whose promise lapsed.
  [[nodiscard]] bool keeps_for_open() const noexcept;
  [[nodiscard]] const std::vector<Ticket*>& open_tickets() const noexcept { return open_; }
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_.size(); }
  /// In the order of their closing.
  [[nodiscard]] const std::vector<Ticket*>& submitted_tickets() const noexcept {
    return submitted_;
  }
  /// Batches that settled while nothing was recorded, for the recorder that knows of them; each is
  /// given once.
  [[nodiscard]] std::vector<SettledUnheard> take_settled_unheard();
  [[nodiscard]] Bytes allocated()
      const noexcept;  ///< by open batches, and not freed: no live memory
  /// An open batch that was perhaps never closed, the oldest; its promise lapses. It has allocated
  /// nothing while kManyBatches others were closed, nor for `patience` after an earlier call found
  /// that. Many batches alone are no sign: while one thread reads its input, or has no core to run
  /// on, another can close hundreds. Null: there is none.
  static constexpr std::uint64_t kManyBatches = 16;
  [[nodiscard]] const Ticket* take_forgotten(std::chrono::steady_clock::time_point now,
                                             std::chrono::nanoseconds patience) noexcept;

  /// Device time that the submitted batches are expected to keep the device busy: that of the
  /// stream with the most of it. Not the sum over streams, nor the time in which any stream is
  /// busy: a batch's copies run beside the batch before it, so many batches take as long as their
  /// busiest stream. A kind never settled is expected to take as long as the longest known kind,
  /// and kUnknownTime when none is known, so that what is not known yet cannot queue up.
  static constexpr std::chrono::nanoseconds kUnknownTime = std::chrono::hours(1);
  [[nodiscard]] std::chrono::nanoseconds queued_time() const noexcept;
  [[nodiscard]] std::uint64_t settled() const noexcept { return settled_; }
  /// What a frontend that is held back waits for: a point, not passed, of the batch a quarter into
  /// the queue. With fewer than four submitted that is the oldest; with many, waking for each of
  /// them would cost the device more than it gives, and three quarters are still queued. Nothing
  /// when no such point is known.
  [[nodiscard]] std::optional<Point> point_to_await(
      const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept;
  /// Roles for which some submitted batch still lacks its point, and how it gets one.
  [[nodiscard]] std::array<bool, kStreamRoles> unrecorded() const noexcept;
  /// `closed` is from before `point` was recorded: it says nothing of batches that closed later.
  void note_recorded(StreamRole role, Point point, std::uint64_t closed) noexcept;
  [[nodiscard]] std::uint64_t closed() const noexcept { return closed_; }  ///< batches so far

 private:
  void learn_from(Ticket& ticket);
  void keep_unheard(const Ticket& ticket) noexcept;
  [[nodiscard]] std::optional<Bytes> largest_known() const noexcept;
  [[nodiscard]] std::optional<StreamTimes> longest_known() const noexcept;

  std::map<std::string, std::unique_ptr<BatchKind>, std::less<>> kinds_;
  std::vector<std::unique_ptr<Ticket>> tickets_;  ///< owns them; they are used again
  std::vector<Ticket*> free_;
  std::vector<Ticket*> open_;
  std::vector<Ticket*> submitted_;  ///< in the order of their closing
  std::vector<SettledUnheard> settled_unheard_;
  std::uint64_t serials_ = 0;
  std::uint64_t closed_ = 0;
  std::uint64_t settled_ = 0;
};

}  // namespace weir
