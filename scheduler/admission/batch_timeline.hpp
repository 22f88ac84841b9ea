#pragma once

// Reports batches to recorders.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "allocator/base/error.hpp"
#include "allocator/base/pressure.hpp"
#include "allocator/timeline/sink.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/ledger.hpp"

namespace weir {

/// Returns the next batch number of the process, from 1. May start or stop a recording, so the
/// caller must hold no lock.
[[nodiscard]] std::uint32_t next_batch_number() noexcept;

/// Restarts the numbers at 1, for a program that makes several runs. No batch may be open or in
/// flight.
void number_batches_anew() noexcept;

// The next four need the lock that guards the ticket.

/// What a batch was admitted under.
struct AdmittedUnder {
  std::chrono::nanoseconds target{};  ///< the run-ahead target; zero: none
  Pressure pressure{};                ///< of the pool; number 0: it was not looked at
};
/// Records that the batch is open.
void note_admission(Ticket& ticket, TimelineAdmission admission,
                    const AdmittedUnder& under = {}) noexcept;
/// Records that the batch was closed or settled (kClose or kSettle). Returns whether a recorder got
/// it.
bool note_batch(TimelineKind kind, Ticket& ticket) noexcept;
/// Tells a recorder that began later that the batch is open or in flight; once per recorder.
void note_live(TimelineSink& sink, Ticket& ticket) noexcept;

/// Records that a batch settled while nothing was recorded.
void note_settled_unheard(TimelineSink& sink, const SettledUnheard& batch) noexcept;

/// Returns what a batch of that decision waits for; nothing if it does not wait.
[[nodiscard]] std::optional<TimelineStall> stall_of(Decision decision) noexcept;
/// Records that batch `number`, of kind `kind` and begun at `where`, was held back for `cause` from
/// the slice's beginning until now.
void note_stall(const TimelineSlice& slice, TimelineStall cause, std::uint32_t number,
                std::string_view kind, CallSite where) noexcept;

// Records a wait for the device that the program asked for.

/// Records that the calling thread waits for the device during its lifetime.
class Barrier {
 public:
  /// `name` is the waiting call, at `where`; `batch` its batch, if any; `source` the device's
  /// number.
  Barrier(std::string_view name, CallSite where, std::uint16_t source,
          std::uint32_t batch = 0) noexcept
      : name_(name), where_(where), source_(source), batch_(batch) {}
  ~Barrier() {
    TimelineSink* const sink = slice_.sink();
    if (sink == nullptr) return;
    slice_.write({.batch = batch_,
                  .name = sink->name(name_),
                  .site = sink->site(where_.file, where_.line),
                  .source = source_,
                  .kind = TimelineKind::kBarrier});
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

 private:
  const TimelineSlice slice_;
  const std::string_view name_;
  const CallSite where_;
  const std::uint16_t source_;
  const std::uint32_t batch_;
};

}  // namespace weir
