#pragma once

// What holds producers back before a batch. The simulation asks it and does the waiting.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/simulate/device.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/admission/run_ahead_limit.hpp"

namespace weir::simulate {

/// What to do about a batch that asks to begin.
struct Verdict {
  enum class Wait : std::uint8_t {
    kNone,    ///< begin
    kDevice,  ///< until batch `sequence` is passed
    kTask,    ///< until `task_end`
    kTurn,    ///< until Gate::wakes names the producer
    kOpen,    ///< the same, at most the grace
  };
  Wait wait = Wait::kNone;
  std::uint64_t sequence = 0;
  Time task_end{};
  bool soft = false;    ///< a limit on running ahead holds it back, not memory or a turn
  bool memory = false;  ///< memory holds it back
};

/// Gets each event with the simulated time. `producer` counts from 0; a producer has at most one
/// batch that asks or is open.
class Gate {
 public:
  virtual ~Gate() = default;
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  [[nodiscard]] virtual Verdict ask(std::size_t producer, const BatchShape& shape, Time now) = 0;
  /// The producer's wait, since `since`, has ended.
  virtual void woken(std::size_t /*producer*/, Time /*since*/, Time /*now*/) {}
  virtual void allocated(std::size_t /*producer*/, Bytes /*bytes*/, bool /*waited*/) {}
  virtual void freed(std::size_t /*producer*/, Bytes /*bytes*/, bool /*awaiting*/) {}
  /// Outputs that a closed batch kept are freed.
  virtual void freed_kept(void* /*ticket*/, std::uint64_t /*serial*/, Bytes /*bytes*/) {}
  /// All of the batch is enqueued; `flight` is null if it was abandoned.
  virtual void closed(std::size_t /*producer*/, Flight* /*flight*/, Time /*now*/) {}
  /// The device has passed the batch.
  virtual void passed(const Flight& /*flight*/) {}
  /// Producers that wait for a turn or an open batch and may look again; each once.
  [[nodiscard]] virtual std::vector<std::size_t> wakes() { return {}; }
  /// Serial of the producer's open batch; 0: the gate counts none.
  [[nodiscard]] virtual std::uint64_t serial(std::size_t /*producer*/) const { return 0; }
  /// Counts all batches that the device has passed.
  [[nodiscard]] virtual std::optional<RunAheadStatistics> control() { return std::nullopt; }
  /// The run-ahead target, if it adapts.
  [[nodiscard]] virtual Time target_so_far() const { return {}; }
};

/// When inputs that do not fit take over memory of freed working sets, for whose computes their
/// copy then waits on the device.
enum class HandOver : std::uint8_t {
  kNever,   ///< the host waits until they fit
  kLast,    ///< the host first waits until no more than one batch is submitted, as weir's pools do
  kAlways,  ///< before the host waits
};

/// A rule by which batches are held back, and what else belongs to a policy.
struct PolicyChoice {
  enum class Rule : std::uint8_t {
    kWeir,     ///< AdmissionRules with `run_ahead`
    kBeside,   ///< the same, but a batch starts in partial room beside open batches, too
    kNothing,  ///< no rule before a batch
    kBatches,  ///< at most `limit` batches are submitted
    kTasks,    ///< more than `limit` tasks (copies and computes), or too many bytes: waits for one
    kBytes,    ///< waits until the batch fits
    kDynamic,  ///< Linux's dynamic queue limits, over bytes
  };
  std::string_view name;
  std::string_view about;
  Rule rule = Rule::kNothing;
  RunAhead run_ahead{};
  std::uint64_t limit = 0;
  bool barrier = false;    ///< waits for the device after each batch
  bool has_budget = true;  ///< otherwise memory is unlimited
  /// Only the rule knows the budget: memory itself is unlimited.
  bool may_exceed = false;
  HandOver hand_over = HandOver::kLast;
};

/// All policies of the table. The first is weir's.
[[nodiscard]] const std::vector<PolicyChoice>& policies();
[[nodiscard]] std::unique_ptr<Gate> make_gate(const PolicyChoice& policy, Memory& memory,
                                              Device& device, Bytes budget, std::size_t producers);
/// The gate of weir's own rules. `beside_open`: a batch needs room beside live memory only, also if
/// other batches are open. No order of allocations allows more, and most do not allow that.
[[nodiscard]] std::unique_ptr<Gate> make_weir_gate(const RunAhead& run_ahead, Memory& memory,
                                                   std::size_t producers, bool beside_open);

}  // namespace weir::simulate
