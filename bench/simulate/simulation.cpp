// One run of simulated producers and a device. One long file, because each step of a producer
// changes the memory, the device's queue and who may go on, and the order of these changes matters.

#include "bench/simulate/simulation.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir::simulate {
namespace {

constexpr Time kNever = Time::max();
constexpr Bytes kUnlimited{UINT64_MAX / 4};

/// Outputs that a batch kept.
struct Kept {
  Bytes bytes;
  void* ticket;
  std::uint64_t serial;
};

struct Producer {
  enum class Stage : std::uint8_t { kLoad, kBegin, kInputs, kCopy, kWork, kClose, kBarrier };

  Batches batches;
  Random host;  ///< of its delays: the same under each policy
  Stage stage = Stage::kLoad;
  Time next{};  ///< when it goes on
  BatchShape shape{};
  Flight flight{};
  std::optional<Time> asleep_since{};  ///< it is on its way out of a wait
  bool is_soft = false;                ///< that wait is for a limit on running ahead
  bool blocked = false;                ///< it waits for memory that no submitted work frees
  bool waited = false;                 ///< its allocation had to wait
  Time soft{};                         ///< part of the stalls that is not in the sum yet
  Time stall{};                        ///< of this batch
  Time admitted{};
  Time submit{};  ///< from the beginning of this batch to its end, without waits
  Bytes taken{};  ///< bytes of its computed batches
  std::deque<Kept> kept{};
  std::size_t begun = 0;  ///< batches
};

/// Reorders `stalls`.
Stalls summary(std::vector<Time>& stalls) {
  if (stalls.empty()) return {};
  const auto at = [&](double part) {
    const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(stalls.size()));
    const auto found = stalls.begin() + std::min(place, std::ssize(stalls) - 1);
    std::ranges::nth_element(stalls, found);
    return *found;
  };
  return {
      .batches = stalls.size(), .p50 = at(0.5), .p95 = at(0.95), .p99 = at(0.99), .most = at(1)};
}

class Simulation {
 public:
  Simulation(const Workload& workload, const PolicyChoice& policy, const RunOptions& options)
      : workload_(workload),
        policy_(policy),
        options_(options),
        memory_(policy.has_budget && !policy.may_exceed ? options.budget : kUnlimited),
        device_(options.jitter, options.seed * 104'729),
        gate_(make_gate(policy, memory_, device_, options.budget, workload.producers.size())),
        wake_ups_(options.seed * 7919 + 13) {
    for (std::size_t i = 0; i < workload.producers.size(); ++i) {
      producers_.push_back({.batches = Batches(workload, i, options.seed, options.budget),
                            .host = Random(options.seed * 15'485'863 + 5417 + i)});
    }
  }

  [[nodiscard]] RunResult run() {
    while (begun_ < options_.batches || is_any_open()) {
      const std::size_t next = earliest();
      Producer& producer = producers_[next];
      if (producer.next == kNever) {
        unblock();
        continue;
      }
      now_ = producer.next;
      advance();
      end_wait(next);
      step(next);
      wake();
    }
    finish();
    return std::move(run_);
  }

 private:
  using Stage = Producer::Stage;

  [[nodiscard]] bool is_any_open() const {
    return std::ranges::any_of(producers_,
                               [](const Producer& p) { return p.stage != Stage::kLoad; });
  }
  /// A producer that has no batch left to begin is never the earliest.
  [[nodiscard]] std::size_t earliest() const {
    std::size_t best = producers_.size();
    for (std::size_t i = 0; i < producers_.size(); ++i) {
      if (producers_[i].stage == Stage::kLoad && begun_ >= options_.batches) continue;
      if (best == producers_.size() || producers_[i].next < producers_[best].next) best = i;
    }
    return best;
  }

  /// Everybody waits for memory of open batches: the youngest fails, as who_fails decides.
  void unblock() {
    Producer* youngest = nullptr;
    for (Producer& producer : producers_) {
      if (!producer.blocked) continue;
      if (youngest == nullptr || producer.admitted >= youngest->admitted) youngest = &producer;
    }
    if (youngest == nullptr) throw Error("the simulation stands: nobody goes on");
    youngest->blocked = false;
    fail(static_cast<std::size_t>(youngest - producers_.data()));
  }

  // The device -----------------------------------------------------------------------------------

  void advance() {
    while (!device_.flights().empty() && device_.flights().front().end <= now_) {
      const Flight flight = device_.flights().front();
      device_.flights().pop_front();
      pass(flight);
    }
  }
  void pass(const Flight& flight) {
    memory_.pass(flight.sequence, flight.awaiting);
    note_sample(flight.end);
    gate_->passed(flight);
    attribute(flight);
    producers_[flight.producer].taken += flight.shape.peak();
    ++run_.batches;
    run_.computed += flight.computing;
    run_.duration = flight.end;
    if (run_.batches == options_.batches / 2) memory_.reset_peak();
  }
  void attribute(const Flight& flight) {
    if (flight.sequence == 1) {
      run_.idle.warm_up += flight.gap;
      return;
    }
    const Time own = flight.was_ready() ? flight.gap : flight.synchronizing;
    const Time gap = flight.gap - own;
    const auto credit = flight.waited_for_memory ? free_run_.behind() : flight.soft;
    const Time throttle = std::min(free_run_.note_settled(flight.run(), credit), gap);
    const Time memory = std::clamp(flight.hard - hard_used_, Time{}, gap - throttle);
    hard_used_ += memory;
    run_.idle.device += own;
    run_.idle.host += gap - throttle - memory;
    if (flight.sequence <= RunResult::kWarmUp) {
      run_.idle.warm_up += throttle + memory;
    } else {
      run_.idle.throttle += throttle;
      run_.idle.memory += memory;
    }
  }

  // Waits ----------------------------------------------------------------------------------------

  [[nodiscard]] Time wake_up() { return options_.jitter.wake_up.draw(wake_ups_); }
  /// Lets the producer go on once the device has passed batch `sequence`.
  void sleep_until_passed(Producer& producer, std::uint64_t sequence, bool is_soft) {
    sleep_until(producer, device_.flight(sequence).end, is_soft);
  }
  void sleep_until(Producer& producer, Time time, bool is_soft) {
    producer.asleep_since = now_;
    producer.is_soft = is_soft;
    const auto recorded = producer.flight.delays.wake_up;
    producer.next = time + (recorded ? *recorded : wake_up());
  }
  void end_wait(std::size_t index) {
    Producer& producer = producers_[index];
    if (!producer.asleep_since) return;
    const Time since = *std::exchange(producer.asleep_since, std::nullopt);
    (producer.is_soft ? producer.soft : hard_) += now_ - since;
    producer.stall += now_ - since;
    if (producer.stage == Stage::kBegin) gate_->woken(index, since, now_);
  }
  void wake() {
    for (const std::size_t index : gate_->wakes()) producers_[index].next = now_ + wake_up();
  }
  void wake_blocked() {
    for (Producer& producer : producers_) {
      if (std::exchange(producer.blocked, false)) producer.next = now_ + wake_up();
    }
  }

  // A batch --------------------------------------------------------------------------------------

  void step(std::size_t index) {
    Producer& producer = producers_[index];
    switch (producer.stage) {
      case Stage::kLoad:
        load(producer);
        break;
      case Stage::kBegin:
        begin(index);
        break;
      case Stage::kInputs:
        take_inputs(index);
        break;
      case Stage::kCopy:
        producer.flight.shape = producer.shape;
        device_.copy(now_, producer.flight);
        producer.stage = Stage::kWork;
        break;
      case Stage::kWork:
        take_work(index);
        break;
      case Stage::kClose:
        close(index);
        break;
      case Stage::kBarrier:
        end_batch(producer);
        break;
    }
  }

  /// Returns the delays of its next batch.
  [[nodiscard]] BatchDelays delays(Producer& producer) {
    const auto index = static_cast<std::size_t>(&producer - producers_.data());
    const std::size_t batch = producer.begun++;
    if (index < options_.recorded.size() && batch < options_.recorded[index].size()) {
      return options_.recorded[index][batch];
    }
    return {.host = options_.jitter.host.draw(producer.host),
            .submit = options_.jitter.submit.draw(producer.host)};
  }
  void load(Producer& producer) {
    ++begun_;
    producer.shape = producer.batches.next();
    if (producer.shape.peak() > options_.budget) ++run_.too_large;
    producer.flight = {.delays = delays(producer)};
    const Time load = producer.shape.load + producer.flight.delays.host;
    producer.next = now_ + load;
    producer.stage = Stage::kBegin;
  }

  void begin(std::size_t index) {
    Producer& producer = producers_[index];
    const Verdict verdict = gate_->ask(index, producer.shape, now_);
    if (verdict.memory) producer.flight.waited_for_memory = true;
    switch (verdict.wait) {
      case Verdict::Wait::kNone:
        producer.admitted = now_;
        producer.flight.soft = free_run_.note_held_back(std::exchange(producer.soft, Time{}));
        if (producer.flight.waited_for_memory) free_run_.note_synchronized();
        producer.stage = Stage::kInputs;
        break;
      case Verdict::Wait::kDevice:
        sleep_until_passed(producer, verdict.sequence, verdict.soft);
        break;
      case Verdict::Wait::kTask:
        sleep_until(producer, verdict.task_end, verdict.soft);
        break;
      case Verdict::Wait::kTurn:
      case Verdict::Wait::kOpen:
        producer.asleep_since = now_;
        producer.is_soft = false;
        producer.next = verdict.wait == Verdict::Wait::kTurn ? kNever : now_ + kGrace;
        break;
    }
  }

  [[nodiscard]] bool may_take_over() const {
    if (policy_.hand_over == HandOver::kNever) return false;
    switch (options_.hand_over.value_or(policy_.hand_over)) {
      case HandOver::kNever:
        return false;
      case HandOver::kLast:
        return device_.flights().size() <= 1;
      case HandOver::kAlways:
        break;
    }
    return true;
  }
  void take_inputs(std::size_t index) {
    Producer& producer = producers_[index];
    const Bytes bytes = producer.shape.inputs + producer.shape.retained;
    const bool may_take = is_first_for_memory(index);
    bool is_taken = may_take && memory_.take(bytes);
    if (may_take && !is_taken && may_take_over() && memory_.take_over(bytes, device_.enqueued())) {
      is_taken = true;
      producer.flight.copy_after = device_.flights().back().computed;
    }
    if (!take(index, is_taken, bytes)) return;
    producer.submit = producer.shape.submit + producer.flight.delays.submit;
    producer.next = now_ + producer.submit / 2;
    producer.stage = Stage::kCopy;
  }
  void take_work(std::size_t index) {
    Producer& producer = producers_[index];
    const Bytes bytes = producer.shape.work;
    const bool is_taken = is_first_for_memory(index) && memory_.take_work(bytes);
    if (!take(index, is_taken, bytes)) return;
    producer.flight.hard = hard_;
    producer.next = now_ + producer.submit - producer.submit / 2;
    producer.stage = Stage::kClose;
  }
  /// Counts an allocation that was made, or waits to try it again. Returns whether it was made.
  [[nodiscard]] bool take(std::size_t index, bool is_taken, Bytes bytes) {
    Producer& producer = producers_[index];
    if (is_taken) {
      leave_line(index);
      gate_->allocated(index, bytes, std::exchange(producer.waited, false));
      note_sample(now_);
      return true;
    }
    producer.waited = producer.flight.waited_for_memory = true;
    free_run_.note_synchronized();
    if (bytes > memory_.budget()) {
      fail(index);
      return false;
    }
    if (std::ranges::count(line_, index) == 0) line_.push_back(index);
    const bool is_first = is_first_for_memory(index);
    if (is_first && !device_.flights().empty()) {
      sleep_until_passed(producer, device_.flights().front().sequence, false);
      return false;
    }
    producer.asleep_since = now_;
    producer.is_soft = false;
    producer.next = kNever;
    producer.blocked = is_first;
    if (is_first) leave_line(index);
    return false;
  }
  /// Those who wait for memory form one line, so that a producer of small batches cannot take all
  /// of it.
  [[nodiscard]] bool is_first_for_memory(std::size_t index) const {
    return line_.empty() || line_.front() == index;
  }
  void leave_line(std::size_t index) {
    if (line_.empty() || line_.front() != index) return;
    line_.pop_front();
    if (!line_.empty()) producers_[line_.front()].next = now_ + wake_up();
  }

  void close(std::size_t index) {
    Producer& producer = producers_[index];
    Flight& flight = producer.flight;
    flight.producer = index;
    flight.awaiting = producer.shape.inputs;
    device_.compute(now_, flight);
    memory_.free_behind(flight.sequence, producer.shape.inputs, producer.shape.work);
    gate_->freed(index, producer.shape.inputs, true);
    gate_->freed(index, producer.shape.work, false);
    const std::uint64_t serial = gate_->serial(index);
    Flight& submitted = device_.flights().back();
    gate_->closed(index, &submitted, now_);
    if (options_.keep_flights) run_.flights.push_back(submitted);
    if (workload_.retain > 0) {
      producer.kept.push_back(
          {.bytes = producer.shape.retained, .ticket = submitted.ticket, .serial = serial});
      if (producer.kept.size() > workload_.retain) drop_oldest(producer);
    }
    wake_blocked();
    note_sample(now_);
    if (!policy_.barrier) {
      end_batch(producer);
      return;
    }
    producer.stage = Stage::kBarrier;
    sleep_until_passed(producer, flight.sequence, true);
  }

  void drop_oldest(Producer& producer) {
    const Kept kept = producer.kept.front();
    producer.kept.pop_front();
    // The point of a free covers all that is enqueued by then, not only the kept batch.
    const bool passed = device_.flights().empty();
    memory_.free_kept(kept.bytes, passed);
    if (!passed) device_.flights().back().awaiting += kept.bytes;
    gate_->freed_kept(kept.ticket, kept.serial, kept.bytes);
  }

  /// The batch runs out of memory: its program abandons it and goes on. Its copy still runs.
  void fail(std::size_t index) {
    Producer& producer = producers_[index];
    if (producer.stage == Stage::kWork) {
      const Bytes bytes = producer.shape.inputs + producer.shape.retained;
      memory_.drop(bytes);
      gate_->freed(index, bytes, false);
    }
    if (producer.waited) gate_->allocated(index, {}, true);  // the rules hear that it waited
    gate_->closed(index, nullptr, now_);
    ++run_.failed;
    producer.waited = false;
    producer.asleep_since.reset();
    producer.next = now_;
    end_batch(producer);
    wake_blocked();
  }

  void end_batch(Producer& producer) {
    stalls_.push_back(std::exchange(producer.stall, Time{}));
    producer.stage = Stage::kLoad;
  }

  void finish() {
    now_ = kNever;
    advance();
    for (Producer& producer : producers_) {
      while (!producer.kept.empty()) drop_oldest(producer);
    }
    run_.peak = std::max(peak_before_, memory_.peak());
    run_.warm_peak = memory_.peak();
    run_.held_peak = memory_.held_peak();
    run_.left = memory_.used();
    run_.caused_idle = free_run_.lost();
    run_.control = gate_->control();
    run_.stalls = summary(stalls_);
    double sum = 0;
    double squares = 0;
    for (const Producer& producer : producers_) {
      const auto bytes = static_cast<double>(producer.taken.count);
      sum += bytes;
      squares += bytes * bytes;
    }
    const auto count = static_cast<double>(producers_.size());
    run_.jain = squares > 0 ? sum * sum / (count * squares) : 1;
  }

  void note_sample(Time time) {
    peak_before_ = std::max(peak_before_, memory_.peak());
    if (!options_.keep_series) return;
    run_.series.push_back({.time = time,
                           .used = memory_.used(),
                           .submitted = device_.flights().size(),
                           .target = gate_->target_so_far()});
  }

  static constexpr Time kGrace = std::chrono::seconds(10);

  const Workload& workload_;
  const PolicyChoice& policy_;
  const RunOptions& options_;
  Memory memory_;
  Device device_;
  std::unique_ptr<Gate> gate_;
  std::vector<Producer> producers_;
  Random wake_ups_;
  std::deque<std::size_t> line_;  ///< producers that wait for memory
  Time now_{};
  std::uint64_t begun_ = 0;
  Time hard_{};  ///< sum of waits
  Time hard_used_{};
  FreeRun free_run_;  ///< counts what this policy, whichever it is, has cost
  Bytes peak_before_{};
  std::vector<Time> stalls_;  ///< of each batch
  RunResult run_;
};

}  // namespace

double RunResult::throughput() const {
  if (duration == Time{}) return 0;
  return static_cast<double>(computed.count()) / static_cast<double>(duration.count());
}

RunResult simulate(const Workload& workload, const PolicyChoice& policy,
                   const RunOptions& options) {
  return Simulation(workload, policy, options).run();
}

}  // namespace weir::simulate
