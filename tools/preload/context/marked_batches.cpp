#include "tools/preload/context/marked_batches.hpp"

#include <algorithm>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"

namespace weir::preload {
namespace {

/// How many marked batches the run-ahead begins with. A program that marks its batches has little
/// memory to spare, as a rule.
constexpr std::uint64_t kFirstBatches = 2;

}  // namespace

MarkedBatches::MarkedBatches(Pools& pools, Fences& fences, const Settings& settings)
    : pools_(pools),
      fences_(fences),
      settings_(settings),
      admission_(pools, {.progress = fences, .ids = {fences.everything()}},
                 settings.policy.policy.value, settings.policy.run_ahead.value,
                 settings.max_wait.value, kFirstBatches) {}

std::optional<TicketRef> MarkedBatches::begin(Call& call, std::string_view kind) noexcept {
  if (InCallback::now() || fences_.capturing()) return std::nullopt;
  const NoCancel no_cancel;
  if (count_.fetch_add(1) == 0) pools_.sums().look_out(false);
  std::optional<TicketRef> begun;
  attempt(LogLevel::kInfo, "a batch goes on without admission", [&] {
    const TicketRef ticket = admission_.open(kind, {.until = call.until(settings_.max_wait.value)});
    ticket.ticket->touched.insert(kAllRoles.front());
    const OpenBatch batch{.thread = thread_number(),
                          .ticket = ticket,
                          .began = Fences::Clock::now(),
                          .marker = timeline_marker()};
    (void)TimelineScope::exchange({.batch = ticket.ticket->number});
    if (batch.marker != nullptr) batch.marker->push(ticket.ticket->number, 0);
    const Lock lock(mutex_);
    open_.push_back(batch);
    begun = ticket;
  });
  return begun;
}

void MarkedBatches::end(Call& call) noexcept {
  const NoCancel no_cancel;
  OpenBatch batch;
  {
    const Lock lock(mutex_);
    const auto found = std::ranges::find(open_, thread_number(), &OpenBatch::thread);
    if (found == open_.end()) return;
    batch = *found;
    open_.erase(found);
  }
  (void)TimelineScope::exchange({});
  if (batch.marker != nullptr) batch.marker->pop();
  attempt(LogLevel::kDebug, "a batch is not measured",
          [&] { fences_.measure(*batch.ticket.ticket, batch.began); });
  admission_.close(batch.ticket, true);
  fences_.fence(fences_.everything());
  if (settings_.policy.policy.value != Policy::kBarrier) return;
  attempt(LogLevel::kDebug, "a barrier was skipped", [&] {
    (void)fences_.wait(fences_.record(fences_.everything()),
                       {.until = call.until(settings_.max_wait.value)});
  });
}

void MarkedBatches::charge(void* pointer, Bytes bytes, const Stalls& waits) noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  TicketRef ticket;
  try {
    const Lock lock(mutex_);
    auto batch = std::ranges::find(open_, thread_number(), &OpenBatch::thread);
    // Most programs mark batches on one thread and allocate on others too: a backward pass has its
    // own thread. With several batches open the owner is unknown.
    if (batch == open_.end() && open_.size() == 1) batch = open_.begin();
    if (batch == open_.end()) return;
    ticket = batch->ticket;
    charged_.insert_or_assign(pointer, Charge{ticket, bytes});
    charged_blocks_.store(charged_.size(), std::memory_order_relaxed);
  } catch (const std::exception&) {
    return;  // charged to no batch
  }
  admission_.note_allocated(ticket, bytes, waits);
}

std::optional<MarkedBatches::Charge> MarkedBatches::take_charge(void* pointer) noexcept {
  if (charged_blocks_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  const Lock lock(mutex_);
  const auto found = charged_.find(pointer);
  if (found == charged_.end()) return std::nullopt;
  const Charge charge = found->second;
  charged_.erase(found);
  charged_blocks_.store(charged_.size(), std::memory_order_relaxed);
  return charge;
}

void MarkedBatches::note_freed(const std::optional<Charge>& charge, bool awaiting) noexcept {
  if (charge) {
    admission_.note_freed(charge->ticket, charge->bytes, awaiting);
  } else if (count_.load(std::memory_order_relaxed) != 0) {
    admission_.note_given_back();
  }
}

}  // namespace weir::preload
