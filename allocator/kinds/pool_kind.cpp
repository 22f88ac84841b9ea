// The table of the kinds of pool.

#include "allocator/pool_kind.hpp"

#include <array>
#include <cctype>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "allocator/index/free_bins.hpp"
#include "allocator/index/segment_index.hpp"
#include "allocator/index/size_class_index.hpp"
#include "allocator/kinds/strategies.hpp"

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

std::string kinds_without_pages();

std::unique_ptr<PoolStrategy> make_paged(PoolState& state) {
  PageSource* const pages = state.upstream.pages();
  if (pages == nullptr) {
    throw UsageError("pool (" + state.options.kind.source +
                     "): 'paged' needs memory that is mapped page by page, and this device has "
                     "none; allowed: " +
                     kinds_without_pages());
  }
  return std::make_unique<PageStrategy>(state, *pages);
}

std::string in_bytes(const Bytes& size) { return std::to_string(size.count); }
std::string in_digits(const unsigned& number) { return std::to_string(number); }
std::string in_segments(const Bytes& size) { return format_segment(size); }

/// A setting that only some kinds have: where it is, how it is read, and how it is written.
template <auto Member, auto Parse, auto Text>
constexpr PoolSetting setting_of(std::string_view name, std::string_view variable, bool is_size) {
  return {.name = name,
          .variable = variable,
          .is_size = is_size,
          .set =
              [](PoolOptions& options, std::string_view source, std::string_view text) {
                options.*Member = {Parse(source, text), std::string(source)};
              },
          .text = [](const PoolOptions& options) { return Text((options.*Member).value); },
          .source = [](const PoolOptions& options) { return (options.*Member).source; }};
}
constexpr PoolSetting kPageSetting =
    setting_of<&PoolOptions::page, parse_page, in_bytes>("page", "WEIR_POOL_PAGE_SIZE", true);
constexpr PoolSetting kCutoffSetting = setting_of<&PoolOptions::cutoff, parse_cutoff, in_digits>(
    "linear-cutoff", "WEIR_POOL_LINEAR_CUTOFF", false);
constexpr PoolSetting kSegmentSetting =
    setting_of<&PoolOptions::segment, parse_segment, in_segments>("segment",
                                                                  "WEIR_POOL_SEGMENT_SIZE", true);
constexpr PoolSetting kLargeRoundSetting =
    setting_of<&PoolOptions::large_round, parse_large_round, in_bytes>(
        "large-round", "WEIR_POOL_LARGE_ROUND_SIZE", true);

constexpr std::array kRoundSettings{&kPageSetting, &kCutoffSetting};
constexpr std::array<std::string_view, 2> kRoundBeside{"24", "28"};
constexpr std::array<std::string_view, 5> kRoundToTry{"20", "22", "24", "26", "28"};

constexpr std::array kNaiveSettings{&kPageSetting, &kLargeRoundSetting};
constexpr std::array<std::string_view, 4> kNaiveToTry{"512KiB", "2MiB", "8MiB", "32MiB"};

constexpr std::array kBestFitSettings{&kSegmentSetting};
constexpr std::array<std::string_view, 1> kBestFitBeside{"all"};
constexpr std::array<std::string_view, 3> kBestFitToTry{"16MiB", "256MiB", "all"};

constexpr std::array<KindOfPool, 5> kKinds{{
    {.kind = PoolKind::kUnpooled,
     .name = "unpooled",
     .caches = false,
     .needs_pages = false,
     .splits = false,
     .hits_pass_by = false,
     .block_size = exact,
     .make = make_unpooled},
    {.kind = PoolKind::kNaive,
     .name = "naive",
     .caches = true,
     .needs_pages = false,
     .splits = false,
     .hits_pass_by = true,
     .block_size =
         [](const PoolOptions& options, Bytes bytes) {
           return naive_block(bytes, options.page.value, options.large_round.value);
         },
     .make = make_size_classes,
     .settings = kNaiveSettings,
     .main = &kLargeRoundSetting,
     .to_try = kNaiveToTry},
    {.kind = PoolKind::kRound,
     .name = "round",
     .caches = true,
     .needs_pages = false,
     .splits = false,
     .hits_pass_by = true,
     .block_size =
         [](const PoolOptions& options, Bytes bytes) {
           return round_block(bytes, options.page.value, options.cutoff.value);
         },
     .make = make_size_classes,
     .settings = kRoundSettings,
     .main = &kCutoffSetting,
     .always_named = true,
     .beside = kRoundBeside,
     .to_try = kRoundToTry},
    {.kind = PoolKind::kBestFit,
     .name = "best_fit",
     .caches = true,
     .needs_pages = false,
     .splits = true,
     .hits_pass_by = false,
     .block_size = whole_granules,
     .make = make_best_fit,
     .settings = kBestFitSettings,
     .main = &kSegmentSetting,
     .beside = kBestFitBeside,
     .to_try = kBestFitToTry},
    {.kind = PoolKind::kPaged,
     .name = "paged",
     .caches = true,
     .needs_pages = true,
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

std::string kinds_without_pages() {
  std::string names;
  for (const KindOfPool& kind : kKinds) {  // the best first: they are last in the table
    if (!kind.needs_pages) names.insert(0, names.empty() ? "" : ", ").insert(0, kind.name);
  }
  return names;
}

}  // namespace

std::string flag_of(const PoolSetting& setting) {
  std::string name(setting.variable.substr(std::string_view("WEIR_").size()));
  for (char& letter : name) {
    letter =
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return name;
}

std::string_view allowed_kinds_of_pool() noexcept {
  return "unpooled, naive, round, best_fit or paged";
}

std::span<const KindOfPool> kinds_of_pool() noexcept { return kKinds; }

const KindOfPool& kind_of_pool(PoolKind kind) noexcept {
  return kKinds.at(static_cast<std::size_t>(kind));
}

}  // namespace weir
