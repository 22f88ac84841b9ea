#include <algorithm>
#include <exception>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "allocator/base/log.hpp"
#include "allocator/index/size_class_index.hpp"
#include "allocator/kinds/strategies.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {
namespace {

/// Executes a plan: each step takes what the one before provided. Rethrows what `create` throws;
/// `move` then has the completed steps.
void carry_out(PageSource& source, PageMove& move) {
  if (!move.retire.empty()) move.retired_pages = source.unmap(move.retire);
  move.unmapped = source.unmap(move.unmap);
  for (std::size_t i = 0; i < move.unmapped; ++i) move.pages.push_back(move.unmap[i].page);
  if (move.create != 0 && move.unmapped == move.unmap.size()) {
    const std::size_t had = move.pages.size();
    move.pages.resize(had + move.create);
    try {
      move.created = source.create(std::span(move.pages).subspan(had));
    } catch (...) {
      move.pages.resize(had);
      throw;
    }
    move.pages.resize(had + move.created);
  }
  if (move.pages.size() < move.places.size()) return;
  std::vector<Mapping>& mappings = move.unmap;  // reuse its memory: long enough
  mappings.clear();
  for (std::size_t i = 0; i < move.places.size(); ++i) {
    mappings.push_back({move.places[i], move.pages[i]});
  }
  move.mapped = source.map(mappings);
}

/// How many bytes of new pages to create before moving mapped ones: up to 2% above the most ever
/// held. Otherwise a loop of fixed shapes that needs the same pages in two places would move them
/// in every iteration (docs/fragmentation.md).
std::size_t bytes_to_spare(Bytes most_held, Bytes taken) {
  constexpr std::uint64_t kPart = 50;
  return minus_or_zero(most_held + Bytes{most_held.count / kPart}, taken).count;
}

}  // namespace

PageStrategy::PageStrategy(PoolState& state, PageSource& source)
    : PoolStrategy(state), source_(source), paged_(source.page_size()) {
  state.index = &paged_;
}

bool PageStrategy::add_region(Bytes block) {
  const Bytes page = source_.page_size();
  const Bytes twice{2 * std::max(state_.upstream.capacity().count, block.count)};
  // If addresses are short, halve the size and retry.
  for (Bytes size = *round_up(twice, page); size >= block;
       size = *round_up({size.count / 2}, page)) {
    void* address = source_.reserve(size);
    if (address == nullptr) {
      if (size == page) break;
      continue;
    }
    try {
      const PoolChange change(state_);
      paged_.add_region(address, size, block);
    } catch (...) {
      source_.unreserve(address, size);
      throw;
    }
    return true;
  }
  return false;
}

Block* PageStrategy::grow(Attempt& request) {
  request.upstream_refused = false;  // ignore an earlier round's result
  bool refused = false;
  bool stay = false;  // pages cannot move, as during a capture in the context
  for (;;) {
    PageMove move;
    PoolChange change(state_);
    const Bytes page = paged_.page();
    const Bytes taken = state_.taken();
    request.growth_room = minus_or_zero(state_.statistics.budget, taken);
    request.releasable = paged_.releasable();
    if (!refused) request.releases_before = state_.statistics.releases;
    if (request.block > state_.statistics.budget) return nullptr;  // reserve no addresses either
    PagedIndex::NewPages allowed{.rather = bytes_to_spare(state_.most_held, taken) / page.count,
                                 .most = request.growth_room.count / page.count};
    if (stay) allowed.rather = allowed.most;
    if (refused) allowed = {};
    const auto plan = paged_.plan(request.block, request.stream, allowed, move);
    if (plan == PagedIndex::Plan::kNoPages) return nullptr;
    if (plan == PagedIndex::Plan::kNoAddresses) {
      change.end();
      if (add_region(request.block)) continue;
      request.upstream_refused = true;
      return nullptr;
    }
    const Bytes fresh{move.create * page.count};
    state_.growing += fresh;
    state_.begin_transit();
    change.end();
    const PoolClaim claim(state_, fresh);
    const std::size_t to_move = move.unmap.size();
    Block* block = move_pages(request, move);
    if (block != nullptr || refused) return block;
    // If pages could not be moved, retry with new ones; if the source has none, with free ones.
    if (move.unmapped < to_move) {
      if (stay || allowed.most == 0) return nullptr;
      stay = true;
    } else {
      if (move.created == move.create) return nullptr;
      refused = true;
    }
  }
}

Block* PageStrategy::move_pages(Attempt& request, PageMove& move) {
  std::exception_ptr fault;
  try {
    carry_out(source_, move);
  } catch (...) {
    fault = std::current_exception();
  }
  PoolChange change(state_);
  const Bytes created{move.created * paged_.page().count};
  Block* block = paged_.finish(move);
  state_.statistics.reserved.add(created);
  state_.statistics.cached.add(created);
  ++state_.cached_more;
  state_.statistics.unmapped_pages += move.unmapped + move.retired_pages;
  state_.statistics.mapped_pages += move.mapped;
  std::uint64_t sequence = 0;
  if (created.count != 0) sequence = ++state_.events;
  if (TimelineSink* sink = timeline_sink()) {
    if (created.count != 0) {
      state_.note(*sink, {.id = move.at, .bytes = created.count, .kind = TimelineKind::kReserve});
    }
    const Bytes mapped{move.mapped * paged_.page().count};
    if (mapped > created) {
      state_.note(*sink,
                  {.id = move.at, .bytes = (mapped - created).count, .kind = TimelineKind::kMap});
    }
  }
  if (block != nullptr) {
    state_.statistics.cached.remove(block->size);
    try {
      state_.hand_out(*block, request, TimelineServed::kGrown);
      ++state_.statistics.misses;
    } catch (...) {
      fault = std::current_exception();
    }
  }
  change.end();
  if (sequence != 0) {
    state_.log_event(AllocationEvent::kGrow, sequence, reinterpret_cast<void*>(move.at), created);
  }
  if (fault != nullptr) std::rethrow_exception(fault);
  request.upstream_refused = block == nullptr;
  request.lacks = source_.page_size() * (move.create - move.created);
  return block;
}

StageReport PageStrategy::room_found(const Attempt& request) const {
  return {.stage = "pages", .found = format_bytes(request.releasable) + " cached could be moved"};
}

Bytes PageStrategy::releasable() const {
  const Lock lock(state_.mutex);
  return paged_.releasable();
}

// Unlike that of a segment, the release of a page waits for nothing.
Bytes PageStrategy::trim(Bytes keep, bool /*may_release*/) {
  (void)state_.poll(std::numeric_limits<std::size_t>::max());
  PageMove move;
  PoolChange taking(state_);
  const Bytes page = paged_.page();
  const Bytes most = minus_or_zero(state_.statistics.reserved.current, keep);
  paged_.plan_release((most.count + page.count - 1) / page.count, move);
  if (move.pages.empty() && move.unmap.empty()) return {};
  state_.upstream.begin_release();
  state_.begin_transit();
  taking.end();
  move.retired_pages = source_.unmap(move.retire);
  for (std::size_t i = move.retired_pages; i < move.retire.size(); ++i) {
    move.kept.push_back(move.retire[i].page.id);
  }
  move.unmapped = source_.unmap(move.unmap);
  for (std::size_t i = 0; i < move.unmapped; ++i) move.pages.push_back(move.unmap[i].page);
  // Pages that are still mapped at a stale place become spare.
  std::ranges::sort(move.kept);
  const auto destroyed = std::partition(move.pages.begin(), move.pages.end(), [&](Page each) {
    return std::ranges::binary_search(move.kept, each.id);
  });
  source_.destroy(std::span(destroyed, move.pages.end()));
  state_.upstream.end_release();
  move.destroyed = static_cast<std::size_t>(move.pages.end() - destroyed);
  move.pages.erase(destroyed, move.pages.end());
  const Bytes sum{move.destroyed * page.count};
  PoolChange change(state_);
  (void)paged_.finish(move);
  state_.statistics.cached.remove(sum);
  state_.statistics.reserved.remove(sum);
  state_.statistics.releases += move.destroyed;
  state_.statistics.unmapped_pages += move.unmapped + move.retired_pages;
  const std::uint64_t sequence = ++state_.events;
  if (TimelineSink* sink = timeline_sink(); sink != nullptr && sum.count != 0) {
    state_.note(*sink, {.bytes = sum.count, .kind = TimelineKind::kRelease});
  }
  state_.end_transit();
  change.end();
  state_.log_event(AllocationEvent::kRelease, sequence, nullptr, sum);
  return sum;
}

void PageStrategy::release_all() WEIR_NO_THREAD_SAFETY_ANALYSIS {
  // No other thread uses the pool any more; no lock during calls of the source.
  const auto unmap = [&](Mapping mapping) { return source_.unmap(std::span(&mapping, 1)) == 1; };
  // Destroy a page only if nothing maps it: a stale place that is left may map any.
  const bool no_stale = paged_.end_stale(unmap);
  bool all_unmapped = no_stale;
  paged_.for_each_mapping([&](Mapping mapping) {
    if (!unmap(mapping)) {
      all_unmapped = false;
    } else if (no_stale) {
      source_.destroy(std::span(&mapping.page, 1));
    }
  });
  if (no_stale) source_.destroy(paged_.spare());
  if (!all_unmapped) {
    log(LogLevel::kError,
        "pages of a pool could not be unmapped: they and the pool's addresses are leaked");
    return;
  }
  paged_.for_each_region([&](Segment region) { source_.unreserve(region.pointer, region.size); });
}

}  // namespace weir
