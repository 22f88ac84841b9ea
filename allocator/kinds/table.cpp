// The table of the kinds of pool.

#include <array>
#include <cstddef>
#include <memory>

#include "allocator/base/error.hpp"
#include "allocator/index/free_bins.hpp"
#include "allocator/index/segment_index.hpp"
#include "allocator/index/size_class.hpp"
#include "allocator/index/size_class_index.hpp"
#include "allocator/kinds/page_strategy.hpp"
#include "allocator/kinds/segment_strategy.hpp"
#include "allocator/kinds/unpooled_strategy.hpp"
#include "allocator/pool_kind.hpp"

namespace weir {
namespace {

std::optional<Bytes> exact(const PoolOptions& /*options*/, Bytes bytes) {
  return round_up(bytes, Bytes{1});
}

std::optional<Bytes> whole_granules(const PoolOptions& /*options*/, Bytes bytes) {
  return round_up(bytes, FreeBins::kGranule);
}

std::unique_ptr<PoolStrategy> make_unpooled(PoolState& state) {
  return std::make_unique<UnpooledStrategy>(
      state, std::make_unique<SizeClassIndex>(SizeClassIndex::Reuse::kNone));
}

std::unique_ptr<PoolStrategy> make_size_classes(PoolState& state) {
  return std::make_unique<SegmentStrategy>(
      state, std::make_unique<SizeClassIndex>(SizeClassIndex::Reuse::kAll));
}

std::unique_ptr<PoolStrategy> make_best_fit(PoolState& state) WEIR_NO_THREAD_SAFETY_ANALYSIS {
  // No other thread uses the pool yet.
  return std::make_unique<SegmentStrategy>(
      state, std::make_unique<SegmentIndex>(state.options.segment.value, state.statistics.budget));
}

std::unique_ptr<PoolStrategy> make_paged(PoolState& state) {
  PageSource* const pages = state.upstream.pages();
  if (pages == nullptr) {
    throw UsageError("pool (" + state.options.kind.source +
                     "): 'paged' needs memory that is mapped page by page, and this device has "
                     "none; allowed: best_fit, round, naive, unpooled");
  }
  return std::make_unique<PageStrategy>(state, *pages);
}

constexpr std::array<KindOfPool, 5> kKinds{{
    {.kind = PoolKind::kUnpooled,
     .name = "unpooled",
     .splits = false,
     .hits_pass_by = false,
     .block_size = exact,
     .make = make_unpooled},
    {.kind = PoolKind::kNaive,
     .name = "naive",
     .splits = false,
     .hits_pass_by = true,
     .block_size =
         [](const PoolOptions& options, Bytes bytes) {
           return naive_block(bytes, options.page.value, options.large_round.value);
         },
     .make = make_size_classes},
    {.kind = PoolKind::kRound,
     .name = "round",
     .splits = false,
     .hits_pass_by = true,
     .block_size =
         [](const PoolOptions& options, Bytes bytes) {
           return round_block(bytes, options.page.value, options.cutoff.value);
         },
     .make = make_size_classes},
    {.kind = PoolKind::kBestFit,
     .name = "best_fit",
     .splits = true,
     .hits_pass_by = false,
     .block_size = whole_granules,
     .make = make_best_fit},
    {.kind = PoolKind::kPaged,
     .name = "paged",
     .splits = true,
     .hits_pass_by = false,
     .block_size = whole_granules,
     .make = make_paged},
}};
static_assert([] {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds.at(i).kind != static_cast<PoolKind>(i)) return false;
  }
  return true;
}());

}  // namespace

std::string_view allowed_kinds_of_pool() noexcept {
  return "round, naive, unpooled, best_fit or paged";
}

std::span<const KindOfPool> kinds_of_pool() noexcept { return kKinds; }

const KindOfPool& kind_of_pool(PoolKind kind) noexcept {
  return kKinds.at(static_cast<std::size_t>(kind));
}

}  // namespace weir
