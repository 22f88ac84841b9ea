#pragma once

// The settings that only some kinds of pool have.

#include <string>
#include <string_view>

#include "allocator/pool_kind.hpp"

namespace weir {

inline constexpr PoolSetting kPageSetting{
    .name = "page",
    .variable = "WEIR_POOL_PAGE_SIZE",
    .is_size = true,
    .set =
        [](PoolOptions& options, std::string_view source, std::string_view text) {
          options.page = {parse_page(source, text), std::string(source)};
        },
    .text = [](const PoolOptions& options) { return std::to_string(options.page.value.count); },
    .source = [](const PoolOptions& options) { return options.page.source; }};

inline constexpr PoolSetting kCutoffSetting{
    .name = "linear-cutoff",
    .variable = "WEIR_POOL_LINEAR_CUTOFF",
    .is_size = false,
    .set =
        [](PoolOptions& options, std::string_view source, std::string_view text) {
          options.cutoff = {parse_cutoff(source, text), std::string(source)};
        },
    .text = [](const PoolOptions& options) { return std::to_string(options.cutoff.value); },
    .source = [](const PoolOptions& options) { return options.cutoff.source; }};

inline constexpr PoolSetting kSegmentSetting{
    .name = "segment",
    .variable = "WEIR_POOL_SEGMENT_SIZE",
    .is_size = true,
    .set =
        [](PoolOptions& options, std::string_view source, std::string_view text) {
          options.segment = {parse_segment(source, text), std::string(source)};
        },
    .text = [](const PoolOptions& options) { return format_segment(options.segment.value); },
    .source = [](const PoolOptions& options) { return options.segment.source; }};

inline constexpr PoolSetting kLargeRoundSetting{
    .name = "large-round",
    .variable = "WEIR_POOL_LARGE_ROUND_SIZE",
    .is_size = true,
    .set =
        [](PoolOptions& options, std::string_view source, std::string_view text) {
          options.large_round = {parse_large_round(source, text), std::string(source)};
        },
    .text =
        [](const PoolOptions& options) { return std::to_string(options.large_round.value.count); },
    .source = [](const PoolOptions& options) { return options.large_round.source; }};

}  // namespace weir
