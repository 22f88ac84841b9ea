#include "tools/timeline/analysis/driver_memory.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <tuple>

#include "tools/timeline/model/driver_memory.hpp"

namespace weir::timeline {
namespace {

/// Returns the indices of records of these kinds, in order.
std::vector<std::uint32_t> places_of(const Index& index,
                                     std::initializer_list<TimelineKind> kinds) {
  std::vector<std::uint32_t> places;
  for (const TimelineKind kind : kinds) {
    const auto of_kind = index.of(kind);
    places.insert(places.end(), of_kind.begin(), of_kind.end());
  }
  std::ranges::sort(places);
  return places;
}

std::vector<LibraryMemory> by_library(const Process& process, const DriverMemory& memory) {
  std::map<std::uint32_t, LibraryMemory> libraries;
  for (const auto& [address, block] : memory.blocks()) {
    if (is_of_host(block)) continue;
    LibraryMemory& library = libraries[block.name];
    library.bytes = add_capped(library.bytes, block.bytes);
    ++library.blocks;
  }
  std::vector<LibraryMemory> sorted;
  for (auto& [name, library] : libraries) {
    library.library = process.name(name);
    sorted.push_back(std::move(library));
  }
  std::ranges::stable_sort(sorted, [](const LibraryMemory& a, const LibraryMemory& b) {
    return std::tuple(b.bytes, a.library) < std::tuple(a.bytes, b.library);
  });
  return sorted;
}

}  // namespace

DriverMemoryFigures driver_memory(const Index& index) {
  DriverMemoryFigures figures;
  const auto places = places_of(index, {TimelineKind::kDriverAlloc, TimelineKind::kDriverFree});
  DriverMemory memory;
  std::size_t until_peak = 0;  // an index into `places`
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TimelineRecord& record = index.record(places[i]);
    memory.add(record);
    figures.pinned_peak = std::max(figures.pinned_peak, memory.host());
    if (memory.device() <= figures.device_peak) continue;
    figures.device_peak = memory.device();
    figures.peak_at = record.begin;
    until_peak = i + 1;
  }
  DriverMemory then;
  for (std::size_t i = 0; i < until_peak; ++i) then.add(index.record(places[i]));
  figures.at_peak = by_library(index.process(), then);

  DriverPools pools;
  for (const std::uint32_t place : index.of(TimelineKind::kDriverPool)) {
    pools.add(index.record(place));
    figures.pools_used_peak = std::max(figures.pools_used_peak, pools.used());
    figures.pools_reserved_peak = std::max(figures.pools_reserved_peak, pools.reserved());
  }
  figures.told = !places.empty() || !index.of(TimelineKind::kDriverPool).empty();
  return figures;
}

}  // namespace weir::timeline
