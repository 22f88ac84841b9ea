// What a pool writes to recorders and shows to live views.

#include "allocator/index/block_index.hpp"
#include "allocator/pool.hpp"

namespace weir {

void Pool::note_self(TimelineSink& sink) {
  state_.note(sink,
              {.bytes = state_.statistics.budget.count,
               .kind = TimelineKind::kPool,
               .detail = static_cast<std::uint8_t>(state_.options.place.host ? 1 : 0)},
              state_.options.place.name);
}

void Pool::record_live(TimelineSink& sink) {
  const Lock lock(state_.mutex);
  note_self(sink);
  state_.index->for_each([&](const Block& block) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    if (block.state != BlockState::kAllocated && block.state != BlockState::kFreeing) return;
    state_.note(sink,
                {.id = block.begin(),
                 .bytes = block.size.count,
                 .requested = block.requested.count,
                 .stream = block.home.value,
                 .kind = TimelineKind::kLive},
                block.label_view());
  });
}

void Pool::add_figures(LiveFigures& figures) const {
  if (state_.options.place.host) return;
  DeviceFigures none;
  DeviceFigures* const known = figures.of(state_.options.place.device);
  DeviceFigures& device = known != nullptr ? *known : none;
  const Lock lock(state_.mutex);
  // Pools of one GPU share its budget. Pools without a GPU have one each.
  const Bytes shared = state_.options.place.device != 0 ? device.budget : Bytes{};
  const Bytes more = minus_or_zero(state_.statistics.budget, shared);
  device.budget += more;
  device.allocated += state_.statistics.allocated.current;
  device.awaiting += state_.statistics.awaiting.current;
  device.cached += state_.statistics.cached.current;
  device.reserved += state_.statistics.reserved.current;
  device.failures += state_.statistics.failures;
  device.waits += state_.statistics.waits;
  device.waited += state_.statistics.waited;
  figures.budget += more;
  figures.requested += state_.statistics.requested.current;
  figures.allocated += state_.statistics.allocated.current;
  figures.awaiting += state_.statistics.awaiting.current;
  figures.cached += state_.statistics.cached.current;
  figures.reserved += state_.statistics.reserved.current;
  figures.peak += state_.statistics.reserved.peak;
  figures.failures += state_.statistics.failures;
}

}  // namespace weir
