// What a pool tells a recorder, and what it shows to whoever looks from outside.

#include "allocator/index/block_index.hpp"
#include "allocator/pool.hpp"

namespace weir {

void Pool::note(TimelineSink& sink, TimelineRecord record, std::string_view label) {
  record.sequence = ++noted_;
  record.allocated = statistics_.allocated.current.count;
  record.awaiting = statistics_.awaiting.current.count;
  // A block that is about to be handed out for the first time is cached until it is.
  record.cached = statistics_.reserved.current.count - record.allocated - record.awaiting;
  record.source = number();
  record.device = options_.place.device;
  record.name = sink.name(label);
  sink.write(record);
}

void Pool::note_self(TimelineSink& sink) {
  note(sink,
       {.bytes = statistics_.budget.count,
        .kind = TimelineKind::kPool,
        .detail = static_cast<std::uint8_t>(options_.place.host ? 1 : 0)},
       options_.place.name);
}

void Pool::record_live(TimelineSink& sink) {
  const Lock lock(mutex_);
  if (index_ == nullptr) return;
  note_self(sink);
  index_->for_each([&](const Block& block) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    if (block.state != BlockState::kAllocated && block.state != BlockState::kFreeing) return;
    note(sink,
         {.id = block.begin(),
          .bytes = block.size.count,
          .requested = block.requested.count,
          .stream = block.home.value,
          .kind = TimelineKind::kLive},
         block.label_view());
  });
}

void Pool::add_figures(LiveFigures& figures) const {
  if (options_.place.host) return;
  DeviceFigures none;
  DeviceFigures* const known = figures.of(options_.place.device);
  DeviceFigures& device = known != nullptr ? *known : none;
  const Lock lock(mutex_);
  // Pools of one GPU share its budget. Those of none have one each.
  const Bytes shared = options_.place.device != 0 ? device.budget : Bytes{};
  const Bytes more = minus_or_zero(statistics_.budget, shared);
  device.budget += more;
  device.allocated += statistics_.allocated.current;
  device.awaiting += statistics_.awaiting.current;
  device.cached += statistics_.cached.current;
  device.reserved += statistics_.reserved.current;
  device.failures += statistics_.failures;
  device.waits += statistics_.waits;
  device.waited += statistics_.waited;
  figures.budget += more;
  figures.requested += statistics_.requested.current;
  figures.allocated += statistics_.allocated.current;
  figures.awaiting += statistics_.awaiting.current;
  figures.cached += statistics_.cached.current;
  figures.reserved += statistics_.reserved.current;
  figures.peak += statistics_.reserved.peak;
  figures.failures += statistics_.failures;
}

}  // namespace weir
