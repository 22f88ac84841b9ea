#pragma once

// Replays the records of a run through the ledger and the decision of admission, and refuses every
// transition that these do not allow.
//
// Records of batches are written under admission's lock, and those of a pool under its own. So
// between two records of batches, a look at the pool may have seen any of the states that the
// pool's records show. What one thread has told the pool and not yet the ledger is unknown too:
// with several threads the check therefore takes the most favourable of these states.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/timeline/record.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/ledger.hpp"

namespace weir::testing {

class AdmissionReplay {
 public:
  struct Run {
    Bytes budget{};
    RunAhead run_ahead{};
    bool one_thread = false;  ///< then every state is known exactly
    std::function<std::string(std::uint32_t)> text;
  };

  explicit AdmissionReplay(Run run) : run_(std::move(run)) { window_.push_back({}); }

  /// Returns what is wrong first; nothing if all is allowed and everything has ended.
  [[nodiscard]] std::optional<std::string> replay(const std::vector<TimelineRecord>& records) {
    for (const TimelineRecord& record : records) {
      take(record);
      if (wrong_) return wrong_;
    }
    if (ledger_.open_count() != 0) fail("a batch is not closed");
    if (ledger_.submitted() != 0) fail("a batch is not settled");
    if (ledger_.charged() != Bytes{}) fail("something is still charged");
    return wrong_;
  }
  [[nodiscard]] std::uint64_t admitted() const { return admitted_; }
  [[nodiscard]] std::uint64_t forced() const { return forced_; }
  [[nodiscard]] std::uint64_t beside() const { return beside_; }

 private:
  struct Known {
    Ticket* ticket = nullptr;
    std::uint64_t serial = 0;
    bool closed = false;
    bool settled = false;
    bool has_freed = false;
  };
  struct Memory {
    Bytes held{};
    Bytes awaiting{};
  };
  struct Block {
    std::uint32_t batch = 0;
    Bytes bytes{};
  };

  void fail(const std::string& what) {
    if (!wrong_) wrong_ = what;
  }
  void fail(const TimelineRecord& record, const std::string& what) {
    fail("batch " + std::to_string(record.batch) + ": " + what);
  }

  void take(const TimelineRecord& record) {
    switch (record.kind) {
      case TimelineKind::kAllocate:
      case TimelineKind::kFree:
      case TimelineKind::kSettled:
        memory(record);
        break;
      case TimelineKind::kAdmit:
        admit(record);
        window_.erase(window_.begin(), window_.end() - 1);
        break;
      case TimelineKind::kClose:
        close(record);
        window_.erase(window_.begin(), window_.end() - 1);
        break;
      case TimelineKind::kSettle:
        settle(record);
        window_.erase(window_.begin(), window_.end() - 1);
        break;
      default:
        break;
    }
  }

  void memory(const TimelineRecord& record) {
    if (record.kind == TimelineKind::kAllocate) {
      blocks_[record.id] = {.batch = record.batch, .bytes = {record.bytes}};
      if (const auto batch = batches_.find(record.batch); batch != batches_.end()) {
        ledger_.note_allocated(ref(batch->second), {record.bytes});
      }
    } else if (record.kind == TimelineKind::kFree) {
      const auto block = blocks_.find(record.id);
      if (block == blocks_.end()) return fail("a block is freed that nobody has");
      if (const auto batch = batches_.find(block->second.batch); batch != batches_.end()) {
        batch->second.has_freed = true;
        ledger_.note_freed(ref(batch->second), block->second.bytes, record.detail == 1);
      }
      blocks_.erase(block);
    }
    window_.push_back(
        {.held = {record.allocated + record.awaiting}, .awaiting = {record.awaiting}});
    if (window_.back().held > run_.budget) fail("the pool exceeds its budget");
  }

  static TicketRef ref(const Known& known) { return {known.ticket, known.serial}; }

  void admit(const TimelineRecord& record) {
    const Bytes estimate{record.bytes};
    const bool by_force = record.detail == static_cast<std::uint8_t>(TimelineAdmission::kForced);
    if (batches_.contains(record.batch)) return fail(record, "is admitted twice");
    const auto allowed = [&](const Memory& memory) {
      const Decision decision = decide(state(memory, estimate, by_force), run_.run_ahead);
      return decision == (by_force ? Decision::kForce : Decision::kAdmit);
    };
    // By force: it looked at a moment without room, which is the least favourable one.
    if (std::ranges::none_of(window_, allowed)) {
      fail(record, by_force ? "is forced in without need" : "is admitted where it must wait");
    }
    ++admitted_;
    if (by_force) ++forced_;
    if (ledger_.open_count() + ledger_.submitted() != 0) ++beside_;
    if (by_force) {
      for (Ticket* open : ledger_.open_tickets()) open->lapsed = true;
    }
    Ticket& ticket = ledger_.open(ledger_.kind(run_.text(record.name)), estimate, {}, record.batch);
    batches_[record.batch] = {.ticket = &ticket, .serial = ticket.serial};
  }

  [[nodiscard]] AdmissionState state(const Memory& memory, Bytes estimate, bool grace_over) const {
    return {.grace_over = grace_over,
            .held = memory.held,
            .budget = run_.budget,
            .live = minus_or_zero(memory.held, memory.awaiting + ledger_.allocated()),
            .unspent = promised(grace_over),
            .estimate = estimate,
            .open = ledger_.open_count(),
            .submitted = ledger_.submitted(),
            .queued = ledger_.queued_and_open()};
  }

  /// What open batches are promised. A batch that frees may have told the pool alone: it then
  /// seems to hold its peak.
  [[nodiscard]] Bytes promised(bool exactly) const {
    if (run_.one_thread || exactly) return ledger_.unspent();
    Bytes sum;
    for (const auto& [number, known] : batches_) {
      if (known.closed) continue;
      const Bytes seen = known.has_freed ? known.ticket->peak : known.ticket->net;
      sum += minus_or_zero(ledger_.charge(*known.ticket), seen);
    }
    return sum;
  }

  void close(const TimelineRecord& record) {
    const auto batch = batches_.find(record.batch);
    if (batch == batches_.end()) return fail(record, "is closed and was never admitted");
    Known& known = batch->second;
    if (std::exchange(known.closed, true)) return fail(record, "is closed twice");
    if (known.ticket->peak != Bytes{record.bytes}) fail(record, "has another peak");
    known.ticket->touched.at(0) = true;
    ledger_.close(*known.ticket, {Point{StreamId{1}, kNotPassed}}, true);
  }

  /// One thread's batches end in the order of closing. Two threads may close in another order than
  /// they recorded their points.
  void settle(const TimelineRecord& record) {
    const auto batch = batches_.find(record.batch);
    if (batch == batches_.end() || !batch->second.closed) {
      return fail(record, "is settled and was never closed");
    }
    if (std::exchange(batch->second.settled, true)) return fail(record, "is settled twice");
    Ticket& ticket = *batch->second.ticket;
    if (run_.one_thread && ledger_.submitted_tickets().front() != &ticket) {
      return fail(record, "is settled before one that was closed earlier");
    }
    ticket.points.at(0).sequence = 0;  // passed
    if (ledger_.settle({}) != 1) fail(record, "settles others");
  }

  static constexpr std::uint64_t kNotPassed = 1;

  const Run run_;
  Ledger ledger_;
  std::map<std::uint32_t, Known> batches_;
  std::map<std::uint64_t, Block> blocks_;
  std::vector<Memory> window_;  ///< the pool since the last record of a batch, at least one
  std::uint64_t admitted_ = 0;
  std::uint64_t forced_ = 0;
  std::uint64_t beside_ = 0;  ///< admitted beside another unsettled batch
  std::optional<std::string> wrong_;
};

}  // namespace weir::testing
