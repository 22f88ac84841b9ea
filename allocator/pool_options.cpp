#include "allocator/pool_options.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <vector>

#include "allocator/log/allocation_log.hpp"
#include "allocator/pool_kind.hpp"

namespace weir {
namespace {

constexpr Bytes kSmallestPage{32};
constexpr Bytes kSmallestSegment = mib(2);
constexpr std::string_view kSegments = "a size of 2MiB or more, or all";
constexpr Bytes kSmallestLog = mib(1);
constexpr std::string_view kLogLimits = "a size of 1MiB or more";
constexpr unsigned kSmallestCutoff = 20;
constexpr unsigned kLargestCutoff = 34;

/// Parses sizes as in MXNet's variables (plain bytes) or with a unit.
std::optional<Bytes> parse_plain_or_unit(std::string_view text) {
  if (const auto whole = parse_whole(text)) return Bytes{*whole};
  return parse_bytes(text);
}

}  // namespace

PoolKind parse_pool_kind(std::string_view name, std::string_view text) {
  const auto is = [text](std::string_view known) {
    return std::ranges::equal(text, known, [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    });
  };
  for (const KindOfPool& known : kinds_of_pool()) {
    if (is(known.name)) return known.kind;
  }
  const std::string_view allowed = allowed_kinds_of_pool();
  // The variable may be set for other programs.
  if (is("auto")) {
    refuse(name, text, std::string(allowed) + " here; auto is for programs under libweir.so");
  }
  refuse(name, text, allowed);
}

Bytes parse_page(std::string_view name, std::string_view text) {
  const auto page = parse_plain_or_unit(text);
  if (!page || *page < kSmallestPage) refuse(name, text, "a number of bytes, 32 or more");
  return *page;
}

Bytes parse_large_round(std::string_view name, std::string_view text) {
  const auto large = parse_plain_or_unit(text);
  if (!large || large->count == 0) refuse(name, text, "a number of bytes above zero");
  return *large;
}

Bytes parse_segment(std::string_view name, std::string_view text) {
  if (text == "all") return PoolOptions::kWholeBudget;
  const auto segment = parse_plain_or_unit(text);
  if (!segment || *segment < kSmallestSegment) refuse(name, text, kSegments);
  return *segment;
}

std::string format_segment(Bytes segment) {
  return segment == PoolOptions::kWholeBudget ? "all" : std::to_string(segment.count);
}

std::string parse_log(std::string_view name, std::string_view text) {
  if (text.empty()) refuse(name, text, "the name of a file");
  std::string path(text);
  const std::string process = std::to_string(getpid());
  for (std::size_t at = 0; (at = path.find("%p", at)) != std::string::npos; at += process.size()) {
    path.replace(at, 2, process);
  }
  return path;
}

Bytes parse_log_limit(std::string_view name, std::string_view text) {
  const auto limit = parse_plain_or_unit(text);
  if (!limit || *limit < kSmallestLog) refuse(name, text, kLogLimits);
  return *limit;
}

unsigned parse_cutoff(std::string_view name, std::string_view text) {
  const auto cutoff = parse_whole(text);
  if (!cutoff || *cutoff < kSmallestCutoff || *cutoff > kLargestCutoff) {
    refuse(name, text, "a whole number from 20 to 34, the log2 of the cutoff in bytes");
  }
  return static_cast<unsigned>(*cutoff);
}

std::string_view to_string(PoolKind kind) noexcept {
  for (const KindOfPool& known : kinds_of_pool()) {
    if (known.kind == kind) return known.name;
  }
  return "unknown";
}

std::span<const PoolKind> pool_kinds() noexcept {
  static const std::vector<PoolKind> kKinds = [] {
    std::vector<PoolKind> kinds;
    for (const KindOfPool& each : kinds_of_pool()) kinds.push_back(each.kind);
    return kinds;
  }();
  return kKinds;
}

PoolOptions PoolOptions::from_environment(MxnetContext context, const Environment& environment) {
  // On a cpu device MXNet's CPU variables come first; elsewhere they do not apply.
  const Environment lookup = [&](const char* name) -> const char* {
    const bool cpu_only = std::string_view(name).starts_with("MXNET_CPU_");
    return cpu_only && context != MxnetContext::kCpu ? nullptr : environment(name);
  };
  PoolOptions options;
  read_setting(options.kind, lookup,
               {"WEIR_POOL", "MXNET_CPU_MEM_POOL_TYPE", "MXNET_GPU_MEM_POOL_TYPE"},
               parse_pool_kind);
  read_setting(options.page, lookup,
               {"WEIR_POOL_PAGE_SIZE", "MXNET_CPU_MEM_POOL_PAGE_SIZE", "MXNET_CPU_POOL_PAGE_SIZE",
                "MXNET_GPU_MEM_POOL_PAGE_SIZE", "MXNET_GPU_POOL_PAGE_SIZE"},
               parse_page);
  read_setting(options.large_round, lookup,
               {"WEIR_POOL_LARGE_ROUND_SIZE", "MXNET_CPU_MEM_LARGE_ALLOC_ROUND_SIZE",
                "MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE"},
               parse_large_round);
  read_setting(options.cutoff, lookup,
               {"WEIR_POOL_LINEAR_CUTOFF", "MXNET_CPU_MEM_POOL_ROUND_LINEAR_CUTOFF",
                "MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF"},
               parse_cutoff);
  read_setting(options.segment, lookup, {"WEIR_POOL_SEGMENT_SIZE"}, parse_segment);
  read_setting(options.budget, lookup, {"WEIR_BUDGET"}, parse_budget);
  if (options.budget.source == "default") {
    read_setting(options.budget, lookup,
                 {"MXNET_CPU_MEM_POOL_RESERVE", "MXNET_GPU_MEM_POOL_RESERVE"}, parse_reserve);
  }
  read_setting(options.log, lookup, {"WEIR_ALLOC_LOG"}, parse_log);
  read_setting(options.log_limit, lookup, {"WEIR_ALLOC_LOG_LIMIT"}, parse_log_limit);
  return options;
}

AllocationLog* PoolOptions::open_log() const {
  if (log.value.empty()) return nullptr;
  return &AllocationLog::of_process(log.source, log.value, log_limit.value);
}

void PoolOptions::validate() const {
  if (log_limit.value < kSmallestLog) {
    refuse("log limit (" + log_limit.source + ")", format_bytes(log_limit.value), kLogLimits);
  }
  if (page.value < kSmallestPage) {
    refuse("page (" + page.source + ")", std::to_string(page.value.count), "32 bytes or more");
  }
  if (large_round.value.count == 0) {
    refuse("large rounding (" + large_round.source + ")", "0", "a number of bytes above zero");
  }
  if (segment.value < kSmallestSegment) {
    refuse("segment (" + segment.source + ")", std::to_string(segment.value.count), kSegments);
  }
  if (segment_share == 0) refuse("segment's share", "0", "a number above zero");
  if (kind.value != PoolKind::kRound) return;
  const std::string page_name = "page (" + page.source + ")";
  const std::string page_text = std::to_string(page.value.count);
  if (!std::has_single_bit(page.value.count)) {
    refuse(page_name, page_text, "a power of two for the round pool");
  }
  if (cutoff.value < kSmallestCutoff || cutoff.value > kLargestCutoff) {
    refuse("cutoff (" + cutoff.source + ")", std::to_string(cutoff.value), "20 to 34");
  }
  if (page.value.count > (std::uint64_t{1} << cutoff.value)) {
    refuse(page_name, page_text,
           "at most 2^cutoff, and the cutoff is " + std::to_string(cutoff.value));
  }
}

Bytes PoolOptions::segment_room(Bytes room, Bytes limit) const noexcept {
  return std::min(room, Bytes{limit.count / segment_share});
}

std::optional<Bytes> PoolOptions::block_size(Bytes bytes) const noexcept {
  return kind_of_pool(kind.value).block_size(*this, bytes);
}

}  // namespace weir
