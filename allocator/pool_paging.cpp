// What a pool over pages (`paged`) does in place of growth and release: pages move to where a
// request fits, from under what is free or, within the budget, from the source.

#include <algorithm>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/index/paged/paged_index.hpp"
#include "allocator/index/size_class.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/pool.hpp"
#include "allocator/pool_claim.hpp"

namespace weir {
namespace {

/// What a plan says, one call to the source after the other, each for as much as the one before has
/// given. Rethrows what `create` throws, with what was done by then in the books of `move`.
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
  std::vector<Mapping>& mappings = move.unmap;  // its memory: it was as long, or is long enough
  mappings.clear();
  for (std::size_t i = 0; i < move.places.size(); ++i) {
    mappings.push_back({move.places[i], move.pages[i]});
  }
  move.mapped = source.map(mappings);
}

/// Bytes that are rather made new than moved, where `taken` are reserved: up to 2% more than was
/// ever held at a time. A loop of fixed shapes needs the same pages in two places of each
/// iteration, and would move them for ever; with so many to spare it comes to rest
/// (docs/fragmentation.md).
std::size_t bytes_to_spare(Bytes most_held, Bytes taken) {
  constexpr std::uint64_t kPart = 50;
  return minus_or_zero(most_held + Bytes{most_held.count / kPart}, taken).count;
}

}  // namespace

bool Pool::add_region(Bytes block) {
  PageSource& source = *upstream_.pages();
  const Bytes page = source.page_size();
  const Bytes twice{2 * std::max(upstream_.capacity().count, block.count)};
  // Half as much, and again, where addresses are short.
  for (Bytes size = *round_up(twice, page); size >= block;
       size = *round_up({size.count / 2}, page)) {
    void* address = source.reserve(size);
    if (address == nullptr) {
      if (size == page) break;
      continue;
    }
    try {
      const Lock lock(mutex_);
      paged_->add_region(address, size, block);
    } catch (...) {
      source.unreserve(address, size);
      throw;
    }
    return true;
  }
  return false;
}

Block* Pool::grow_pages(Attempt& request) {
  request.upstream_refused = false;  // what it said in an earlier round is old news
  bool refused = false;
  bool stay = false;  // pages: as while a stream of the context is captured
  for (;;) {
    PageMove move;
    Lock lock(mutex_);
    const Bytes page = paged_->page();
    const Bytes taken = statistics_.reserved.current + growing_;
    request.growth_room = minus_or_zero(statistics_.budget, taken);
    request.releasable = index_->releasable();
    if (request.block > statistics_.budget) return nullptr;  // nor does it get addresses
    PagedIndex::NewPages allowed{.rather = bytes_to_spare(most_held_, taken) / page.count,
                                 .most = request.growth_room.count / page.count};
    if (stay) allowed.rather = allowed.most;
    if (refused) allowed = {};
    const auto plan = paged_->plan(request.block, request.stream, allowed, move);
    if (plan == PagedIndex::Plan::kNoPages) return nullptr;
    if (plan == PagedIndex::Plan::kNoAddresses) {
      lock.unlock();
      if (add_region(request.block)) continue;
      request.upstream_refused = true;
      return nullptr;
    }
    const Bytes fresh{move.create * page.count};
    growing_ += fresh;
    ++transits_;
    lock.unlock();
    const Claim claim(*this, fresh);
    const std::size_t to_move = move.unmap.size();
    Block* block = move_pages(request, move);
    if (block != nullptr || refused) return block;
    // Where pages stay where they are, new ones may do; where the source has no more, what is free.
    if (move.unmapped < to_move) {
      if (stay || allowed.most == 0) return nullptr;
      stay = true;
    } else {
      if (move.created == move.create) return nullptr;
      refused = true;
    }
  }
}

Block* Pool::move_pages(Attempt& request, PageMove& move) {
  std::exception_ptr fault;
  try {
    carry_out(*upstream_.pages(), move);
  } catch (...) {
    fault = std::current_exception();
  }
  Lock lock(mutex_);
  const Bytes created{move.created * paged_->page().count};
  Block* block = paged_->finish(move);
  statistics_.reserved.add(created);
  statistics_.cached.add(created);
  statistics_.unmapped_pages += move.unmapped + move.retired_pages;
  statistics_.mapped_pages += move.mapped;
  std::uint64_t sequence = 0;
  if (created.count != 0) sequence = ++events_;
  if (TimelineSink* sink = timeline_sink()) {
    if (created.count != 0) {
      note(*sink, {.id = move.at, .bytes = created.count, .kind = TimelineKind::kReserve});
    }
    const Bytes mapped{move.mapped * paged_->page().count};
    if (mapped > created) {
      note(*sink, {.id = move.at, .bytes = (mapped - created).count, .kind = TimelineKind::kMap});
    }
  }
  if (block != nullptr) {
    statistics_.cached.remove(block->size);
    try {
      hand_out(*block, request, TimelineServed::kGrown);
      ++statistics_.misses;
    } catch (...) {
      fault = std::current_exception();
    }
  }
  lock.unlock();
  if (sequence != 0) {
    log_event(AllocationEvent::kGrow, sequence, reinterpret_cast<void*>(move.at), created);
  }
  if (fault != nullptr) std::rethrow_exception(fault);
  request.upstream_refused = block == nullptr;
  return block;
}

Bytes Pool::trim_pages(Bytes keep) {
  PageMove move;
  Lock lock(mutex_);
  const Bytes page = paged_->page();
  const Bytes most = minus_or_zero(statistics_.reserved.current, keep);
  paged_->plan_release((most.count + page.count - 1) / page.count, move);
  if (move.pages.empty() && move.unmap.empty()) return {};
  ++transits_;
  lock.unlock();
  PageSource& source = *upstream_.pages();
  move.retired_pages = source.unmap(move.retire);
  for (std::size_t i = move.retired_pages; i < move.retire.size(); ++i) {
    move.kept.push_back(move.retire[i].page.id);
  }
  move.unmapped = source.unmap(move.unmap);
  for (std::size_t i = 0; i < move.unmapped; ++i) move.pages.push_back(move.unmap[i].page);
  // What is still mapped at a stale place stays, as a spare page.
  std::ranges::sort(move.kept);
  const auto destroyed = std::partition(move.pages.begin(), move.pages.end(), [&](Page each) {
    return std::ranges::binary_search(move.kept, each.id);
  });
  source.destroy(std::span(destroyed, move.pages.end()));
  move.destroyed = static_cast<std::size_t>(move.pages.end() - destroyed);
  move.pages.erase(destroyed, move.pages.end());
  const Bytes sum{move.destroyed * page.count};
  lock.lock();
  (void)paged_->finish(move);
  statistics_.cached.remove(sum);
  statistics_.reserved.remove(sum);
  statistics_.releases += move.destroyed;
  statistics_.unmapped_pages += move.unmapped + move.retired_pages;
  const std::uint64_t sequence = ++events_;
  if (TimelineSink* sink = timeline_sink(); sink != nullptr && sum.count != 0) {
    note(*sink, {.bytes = sum.count, .kind = TimelineKind::kRelease});
  }
  --transits_;
  ++transits_ended_;
  const News changes = news();
  lock.unlock();
  tell(changes);
  log_event(AllocationEvent::kRelease, sequence, nullptr, sum);
  return sum;
}

void Pool::give_back_pages(PagedIndex& last) {
  PageSource& source = *upstream_.pages();
  const auto unmap = [&](Mapping mapping) { return source.unmap(std::span(&mapping, 1)) == 1; };
  // A page is destroyed once it is mapped nowhere: where a stale place is left, it is not known
  // which.
  const bool no_stale = last.end_stale(unmap);
  bool all_unmapped = no_stale;
  last.for_each_mapping([&](Mapping mapping) {
    if (!unmap(mapping)) {
      all_unmapped = false;
    } else if (no_stale) {
      source.destroy(std::span(&mapping.page, 1));
    }
  });
  if (no_stale) source.destroy(last.spare());
  if (!all_unmapped) {
    log(LogLevel::kError,
        "pages of a pool could not be unmapped: they and the pool's addresses are kept for ever");
    return;
  }
  last.for_each_region([&](Segment region) { source.unreserve(region.pointer, region.size); });
}

}  // namespace weir
