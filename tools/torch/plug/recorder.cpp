#include "tools/torch/plug/recorder.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "tools/preload/borders/weir.h"
#include "tools/torch/plug/forked.hpp"

namespace weir::torch_plug {
namespace {

/// What PyTorch's compiler says it is doing on this thread, the innermost last.
std::vector<std::string>& compile_contexts() {
  thread_local std::vector<std::string> contexts;
  return contexts;
}

std::size_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

std::size_t reserved_on(c10::DeviceIndex device) noexcept {
  weir_memory memory{};
  memory.size = sizeof memory;
  (void)weir_memory_info(device, &memory);
  return memory.reserved;
}

c10::Device as_device(c10::DeviceIndex index) { return c10::Device(c10::kCUDA, index); }

std::uint32_t bits_of(const std::vector<std::string>& actions) {
  std::uint32_t bits = 0;
#if WEIR_TORCH_HAS_SKIPPED_ACTIONS
  for (const std::string& action : actions) {
    bits |= 1U << static_cast<unsigned>(c10::CachingDeviceAllocator::parseTraceEntryAction(action));
  }
#else
  (void)actions;
#endif
  return bits;
}

}  // namespace

Recorder::Entry Recorder::entry(Entry::Action action, std::size_t address, const Block& block,
                                Context context, c10::approx_time_t time) {
  // As native's: what was asked for, but what would have been needed.
  const std::size_t bytes = action == Entry::OOM ? block.bytes : block.requested;
  if (when_.load(std::memory_order_relaxed) < Level::ALLOC) context = nullptr;
  Entry made(action, block.device, address, bytes, block.stream, WEIR_TORCH_DEFAULT_POOL time,
             std::move(context));
#if WEIR_TORCH_HAS_COMPILE_CONTEXT
  if (!compile_contexts().empty()) made.compile_context_ = compile_contexts().back();
#endif
#if WEIR_TORCH_HAS_USER_METADATA
  made.user_metadata_ = native_.getUserMetadata();
#endif
  return made;
}

void Recorder::record_allocation(const void* address, const Block& block) {
  Entry made =
      entry(Entry::ALLOC, number(address), block, block.context, c10::getApproximateTime());
  tell(made);
  if (keeps(Entry::ALLOC)) of_device(block.device).add(std::move(made));
}

void Recorder::record_free(const void* address, const Block& block) {
  // PyTorch's viewer wants the two one after the other. They have one time, so they stay together
  // when histories are merged.
  const Context context = gathered(Level::ALL);
  const c10::approx_time_t now = c10::getApproximateTime();
  Entry requested = entry(Entry::FREE_REQUESTED, number(address), block, context, now);
  Entry completed = entry(Entry::FREE_COMPLETED, number(address), block, context, now);
  tell(requested);
  tell(completed);
  const bool keeps_requested = keeps(Entry::FREE_REQUESTED);
  const bool keeps_completed = keeps(Entry::FREE_COMPLETED);
  if (!keeps_requested && !keeps_completed) return;
  RecentEntries<Entry>& entries = of_device(block.device);
  if (keeps_requested && keeps_completed) {
    entries.add(std::move(requested), std::move(completed));
  } else {
    entries.add(std::move(keeps_requested ? requested : completed));
  }
}

void Recorder::on_failure(const Block& block, std::size_t total, std::size_t free,
                          std::int64_t allocated) {
  if (is_forked_child()) return;  // a thread of the parent may have held a lock
  if (observed()) {
    const Entry made = entry(Entry::OOM, free, block, block.context, c10::getApproximateTime());
    tell(made);
    if (keeps(Entry::OOM)) of_device(block.device).add(made);
  }
  c10::reportOutOfMemoryToProfiler(static_cast<std::int64_t>(block.bytes),
                                   static_cast<std::size_t>(allocated), reserved_on(block.device),
                                   as_device(block.device));
  std::vector<native_api::OutOfMemoryObserver> observers;
  {
    const std::lock_guard lock(mutex_);
    observers = observers_;
  }
  for (const auto& observer : observers) observer(block.device, block.bytes, total, free);
}

#if WEIR_TORCH_HAS_MEMORY_NOTES
void Recorder::on_annotation(const void* address, const Block& block, const std::string& metadata) {
  if (!observed()) return;
  Entry made = entry(Entry::ANNOTATE, number(address), block, gathered(Level::ALLOC),
                     c10::getApproximateTime());
  made.user_metadata_ = metadata;
  tell(made);
  if (keeps(Entry::ANNOTATE)) of_device(block.device).add(std::move(made));
}
#endif

void Recorder::report(const void* address, const Block& block, int sign, std::int64_t allocated) {
  c10::reportMemoryUsageToProfiler(
      const_cast<void*>(address), sign * static_cast<std::int64_t>(block.bytes),
      static_cast<std::size_t>(allocated), reserved_on(block.device), as_device(block.device));
}

void Recorder::set_history(bool enabled, native_api::CreateContextFn create,
                           std::size_t most_entries, Level when, bool clear,
                           const std::vector<std::string>& skipped) {
  skipped_ = bits_of(skipped);
  context_.store(enabled ? create : nullptr, std::memory_order_release);
  when_ = enabled ? when : Level::NEVER;
  recording_ = enabled;
  std::vector<RecentEntries<Entry>*> histories;
  {
    const std::lock_guard lock(mutex_);
    most_entries_ = most_entries;
    for (const auto& each : histories_) histories.push_back(each.get());
  }
  for (RecentEntries<Entry>* const each : histories) {
    each->set_most(most_entries);
    if (!enabled || clear) each->clear();
  }
  update_observed();
}

void Recorder::add_observer(native_api::OutOfMemoryObserver observer) {
  const std::lock_guard lock(mutex_);
  observers_.push_back(std::move(observer));
}

void Recorder::add_tracker(native_api::AllocatorTraceTracker tracker) {
  {
    const std::lock_guard lock(mutex_);
    auto more = std::make_shared<Trackers>(trackers_ == nullptr ? Trackers{} : *trackers_);
    more->push_back(std::move(tracker));
    trackers_ = std::move(more);
  }
  update_observed();
}

void Recorder::push_compile_context(const std::string& context) {
  compile_contexts().push_back(context);
}

void Recorder::pop_compile_context() {
  if (!compile_contexts().empty()) compile_contexts().pop_back();
}

void Recorder::merge_into(std::vector<std::vector<Entry>>& natives) {
  std::vector<RecentEntries<Entry>*> histories;
  std::size_t most = 0;
  {
    const std::lock_guard lock(mutex_);
    most = most_entries_;
    for (const auto& each : histories_) histories.push_back(each.get());
  }
  if (natives.size() < histories.size()) natives.resize(histories.size());
  const auto to_nanoseconds = clock_.makeConverter();
  for (std::size_t device = 0; device < histories.size(); ++device) {
    std::vector<Entry> ours = histories[device]->all();
    // In microseconds, as native's are.
    for (Entry& each : ours) each.time_.t_ = to_nanoseconds(each.time_.approx_t_) / 1000;
    natives[device] = merged(std::move(ours), std::move(natives[device]), most,
                             [](const Entry& each) { return each.time_.t_; });
  }
}

std::shared_ptr<const Recorder::Trackers> Recorder::trackers() const {
  const std::lock_guard lock(mutex_);
  return trackers_;
}

void Recorder::tell(const Entry& entry) const {
  const std::shared_ptr<const Trackers> all = trackers();
  if (all == nullptr) return;
  for (const auto& tracker : *all) tracker(entry);
}

RecentEntries<Recorder::Entry>& Recorder::of_device(c10::DeviceIndex device) {
  const auto index = static_cast<std::size_t>(device);
  const std::lock_guard lock(mutex_);
  while (histories_.size() <= index) {
    histories_.push_back(std::make_unique<RecentEntries<Entry>>());
    histories_.back()->set_most(most_entries_);
  }
  return *histories_[index];
}

void Recorder::update_observed() {
  const std::lock_guard lock(mutex_);
  observed_ = recording_.load() || trackers_ != nullptr;
}

}  // namespace weir::torch_plug
