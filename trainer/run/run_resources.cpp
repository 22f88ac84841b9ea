#include "trainer/run/run_resources.hpp"

#include <utility>

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"
#include "tools/program/median.hpp"

namespace weir {
namespace {

/// Pools of pages ask the upstream for whole ones. The others ask for as little as the block.
constexpr Bytes kPage = mib(2);

Device open_for(const TrainSettings& settings) {
  start_blas(settings.device.value);
  return open_device(settings.device.value, {.memory = settings.device_memory.value});
}

/// Attaches to the share of the run's device, if the budget is shared.
std::unique_ptr<Share> attach(const TrainSettings& settings, Device& device) {
  if (!settings.shares()) return nullptr;
  const DeviceId id = parse_device_id(settings.device.value);
  const Bytes budget =
      resolve_budget(settings.pool.budget.value, device.memory().upstream.capacity(),
                     "budget (" + settings.pool.budget.source + ")");
  const unsigned number = kind_of(id).on_host ? 0 : static_cast<unsigned>(id.ordinal) + 1;
  return std::make_unique<Share>(ShareOptions{
      .id = settings.share.id(number), .budget = budget, .floor = settings.share.floor_in(budget)});
}

PoolOptions options_for(const TrainSettings& settings, const Share* share) {
  const DeviceId id = parse_device_id(settings.device.value);
  PoolOptions options = settings.pool;
  // The other processes' memory may be in use already: only the floor has to be free.
  if (share != nullptr) {
    options.budget = {BudgetRequest{.bytes = share->lease()}, settings.share.name.source};
  }
  options.place.name = settings.device.value;
  if (!kind_of(id).on_host) options.place.device = static_cast<std::uint16_t>(id.ordinal + 1);
  return options;
}

}  // namespace

std::string remedy_for(const MemoryShortage& shortage, const RunSoFar& run) {
  if (shortage.budget.count == 0) return "";
  if (run.shared) {
    return "a larger WEIR_SHARE_FLOOR, or fewer programs that share: the budget is this one's part";
  }
  const std::string larger = "a larger " + run.budgets + ", or a smaller --batch-size: ";
  const std::string block = format_bytes(shortage.block);
  if (shortage.block.count == 0 || shortage.block > shortage.budget) {
    return larger + "this request alone exceeds the budget";
  }
  if (shortage.allocated + shortage.block > shortage.budget) {
    return larger + format_bytes(shortage.allocated) + " in use and this " + block + " exceed it";
  }
  const Bytes reserved = shortage.allocated + shortage.awaiting + shortage.cached;
  if (reserved + shortage.block + kPage <= shortage.budget) {
    return "a smaller " + run.budgets + ": the device has less memory left than the budget allows";
  }
  if (run.batches == 0) {
    return larger + "one batch does not fit";
  }
  if (run.policy == Policy::kUnbounded) {
    if (shortage.awaiting.count == 0) return "--policy throttled: it hands cached memory over";
    return "--policy throttled: it waits for the " + format_bytes(shortage.awaiting) +
           " that is freed and still in use by the device";
  }
  return "another --pool, see `weir replay --recommend`: free pieces are too small for " + block;
}

RunResources::RunResources(const TrainSettings& settings)
    : device_(open_for(settings)),
      share_(attach(settings, device_)),
      pool_(device_.memory(), options_for(settings, share_.get())),
      shared_budget_(share_ ? std::make_unique<SharedBudget>(*share_, pool_) : nullptr),
      maths_(make_maths(device_)),
      scheduler_(
          device_, pool_,
          {.policy = settings.policy.policy.value, .run_ahead = settings.policy.run_ahead.value}),
      operations_(scheduler_, *maths_) {
  if (settings.memory.value == StaticMemory::kNone) return;
  const bool captured = settings.memory.value == StaticMemory::kShape;
  static_batch_.emplace(operations_.submitter(), captured ? make_batch_graphs(device_) : nullptr);
}

Reader& RunResources::add_reader(const BatchShape& shape, BatchSource source,
                                 std::uint64_t made_beforehand) {
  const StreamId copy_in = device_.backend().stream(StreamRole::kCopyIn);
  const Bytes inputs = Shape{shape.rows, shape.inputs}.bytes();
  pool_.deallocate(pool_.allocate(inputs, copy_in, "inputs"), copy_in);
  return add<Reader>(shape, std::move(source), made_beforehand);
}

Bytes RunResources::staging() const {
  Bytes bytes{};
  for (const auto& reader : readers_) bytes += reader->staging_memory();
  return bytes;
}

Bytes RunResources::staging_obtained() const {
  Bytes bytes{};
  for (const auto& reader : readers_) bytes += reader->staging_obtained();
  return bytes;
}

void RunResources::collect(TrainResult& result) {
  result.pool = pool_.statistics();
  result.admission = scheduler_.admission();
  result.staging = staging();
  result.barriers = scheduler_.barriers();
  result.stalls = stalls();
  result.operations = scheduler_.operations();
  if (static_batch_) {
    result.static_memory = {.arena = static_batch_->arena(),
                            .batches = static_batch_->replayed(),
                            .captures = static_batch_->captures()};
  }
}

Stalls RunResources::stalls() const {
  const AdmissionStatistics a = scheduler_.admission();
  Stalls all;
  for (const Stalls& stalls : {a.budget, a.soft, a.turn, scheduler_.barriers()}) all += stalls;
  return all;
}

HostTimes::~HostTimes() { result_.host_seconds = median(std::move(times_)); }

void HostTimes::stop() {
  const auto took = Clock::now() - started_;
  const std::chrono::nanoseconds now = held();
  times_.push_back(std::chrono::duration<double>(took - (now - held_before_)).count());
  held_before_ = now;
}

void Watch::start() {
  caused_before_ = resources_.caused_idle();
  busy_before_ = resources_.busy();
  started_ = Clock::now();
}

void Watch::stop(TrainResult& result) {
  if (!std::exchange(running_, false)) return;
  const auto seconds = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  const auto stopped = Clock::now();
  const auto since_boot = [](Clock::time_point time) {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
  };
  result.measured_from = since_boot(started_);
  result.measured_to = since_boot(stopped);
  result.seconds = seconds(stopped - started_);
  result.caused_idle = resources_.caused_idle() - caused_before_;
  result.idle_share = 1 - seconds(resources_.busy() - busy_before_) / result.seconds;
}

void until_out_of_memory(TrainResult& result, const TrainSettings& settings,
                         const std::function<void()>& work, const std::string& budgets) {
  try {
    work();
  } catch (const OutOfMemory& error) {
    result.outcome = Outcome::kOutOfMemory;
    result.report = error.what();
    const std::string remedy =
        remedy_for(error.figures(), {.policy = settings.policy.policy.value,
                                     .batches = result.batches + result.test_batches,
                                     .shared = settings.shares(),
                                     .budgets = budgets});
    if (!remedy.empty()) result.report += "\n  what helps: " + remedy;
  }
}

}  // namespace weir
