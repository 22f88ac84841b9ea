#pragma once

// One batch as the ledger keeps it, and what is known of its kind.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/progress/progress.hpp"
#include "scheduler/device/stream.hpp"
#include "scheduler/ledger/batch_run.hpp"

namespace weir {

struct Ticket;
class TimelineSink;

/// What is known of the batches of one kind.
///
/// The footprint is the most that the next batch is expected to hold at one time:
/// - A batch's peak is the most that it had allocated and not freed. Freed memory does not count
///   even if it awaits the device: submitted work frees it, and an allocation that needs it waits.
///   So a slow device does not make batches look larger.
/// - When the next batch of the kind settles, we also learn how much of the peak the batch gave
///   back. The rest is kept state: weights, an optimizer's moments, a cache.
/// - The footprint is the larger of the last peak and the decayed maximum given back. So state that
///   one batch creates counts once and is dropped with the next batch, while a cache that grows in
///   every batch is expected to grow again. Double buffers, which the next batch frees, count as
///   given back.
/// - Until a second batch has settled, kept state counts: it may be double buffers as well as
///   weights, and too low an estimate costs more than too high a one.
struct BatchKind {
  std::string name;
  std::optional<Bytes> footprint;   ///< see above; none before the first batch has settled
  std::optional<Bytes> given_back;  ///< decayed maximum; none before the second has settled
  StreamTimes device_time{};        ///< moving average; zero before the first batch has settled
  Ticket* last = nullptr;           ///< settled last; kept until the next one settles
  std::uint64_t users = 0;          ///< waiting, open, submitted and unheard batches
  std::uint64_t used = 0;           ///< number of its last use
};

/// One batch's charge.
struct Ticket {
  enum class State : std::uint8_t { kSettled, kOpen, kSubmitted };

  State state = State::kSettled;
  std::uint64_t serial = 0;  ///< never reused, so that stale references are detected
  std::uint32_t number = 0;  ///< of the batch in its process, for timelines
  /// The sinks that last recorded its opening and its closing.
  struct {
    const TimelineSink* admission = nullptr;
    const TimelineSink* close = nullptr;
  } told{};
  BatchKind* kind = nullptr;
  CallSite where;            ///< where it was begun
  std::uint64_t thread = 0;  ///< that began it; see this_thread_number
  std::stop_token stop{};    ///< BatchOptions::stop, while it is open
  StreamTimes expected{};    ///< the part of Ledger::queued that is its own
  Bytes estimate{};
  Bytes net{};                      ///< allocated by the batch and not freed since, by any thread
  Bytes peak{};                     ///< largest net while it was open
  Bytes awaiting{};                 ///< freed while it was open, with the device not done
  std::uint64_t closed = 0;         ///< its place in the closing order
  std::uint64_t closed_before = 0;  ///< batches closed when it was opened or last allocated
  /// When it was first found idle since then; see Ledger::take_forgotten.
  std::optional<std::chrono::steady_clock::time_point> found_idle{};
  bool learn = true;    ///< false for an abandoned batch: it teaches nothing about its kind
  bool lapsed = false;  ///< nothing is reserved for it until it allocates again
  /// Serial of the batch that accepts operations; 0: none. Used by the scheduler.
  std::atomic<std::uint64_t> accepts{0};
  int enqueuing = 0;  ///< its closures that run now; guarded by the scheduler's order lock
  StreamRoleSet touched;
  std::array<Point, kStreamRoles> points{};  ///< on the streams it used; set before it is closed
  std::chrono::nanoseconds credit{};         ///< FreeRun::note_held_back at its admission
  bool waited_for_memory = false;            ///< in its admission or in an allocation
  bool stalled = false;                      ///< it is counted as held back
  /// What it did on each stream, in nanoseconds, written by the device's threads; see StreamRun.
  /// Zero again once it is settled.
  struct Ran {
    std::atomic<std::int64_t> device_time{};
    std::atomic<std::int64_t> gap{};
    std::atomic<std::int64_t> starved{};
    std::atomic<std::int64_t> begun{};
    std::atomic<std::int64_t> ended{};
  };
  std::array<Ran, kStreamRoles> ran{};

  /// Counts a task of the batch that the device has run. For the device's threads, one at a time
  /// for each role.
  void note_ran(StreamRole role, const TaskTime& time) noexcept;
  /// Returns what it did so far.
  [[nodiscard]] BatchRun run() const noexcept;
};

/// A reference to a ticket that detects reuse.
struct TicketRef {
  Ticket* ticket = nullptr;
  std::uint64_t serial = 0;

  /// Whether its batch accepts operations.
  [[nodiscard]] bool accepts() const noexcept {
    return ticket != nullptr && ticket->accepts.load(std::memory_order_acquire) == serial;
  }
};

/// The batch charged for memory and work, and what ends a wait for memory.
struct Owner {
  TicketRef batch{};  ///< null outside batches
  std::stop_token stop{};
};

}  // namespace weir
