#include "tools/replay/measure/pools.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

namespace weir::replay {
namespace {

void add_once(std::vector<PoolChoice>& choices, PoolChoice choice) {
  const bool known = std::ranges::any_of(
      choices, [&](const PoolChoice& other) { return other.name == choice.name; });
  if (!known) choices.push_back(std::move(choice));
}

/// Adds `round` with two cutoffs: 24, the default, and 28, which suits traces with few large sizes.
/// Adds `best_fit` also with one segment for all its memory.
void add_all(std::vector<PoolChoice>& choices, std::string_view flag, const PoolOptions& base) {
  for (const PoolKind kind : pool_kinds()) {
    const std::string name(to_string(kind));
    add_once(choices, parse_pool_choice(flag, name, base));
    if (kind == PoolKind::kRound) {
      add_once(choices, parse_pool_choice(flag, name + ":24", base));
      add_once(choices, parse_pool_choice(flag, name + ":28", base));
    }
    if (kind == PoolKind::kBestFit) {
      add_once(choices, parse_pool_choice(flag, name + ":all", base));
    }
  }
}

/// The exact size in the largest unit that divides it: `256MiB`.
std::string typed_size(Bytes bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes.count != 0 && bytes.count % 1024 == 0) {
    bytes.count /= 1024;
    ++unit;
  }
  return std::to_string(bytes.count) + kUnits[unit];
}

bool has_page(PoolKind kind) { return kind == PoolKind::kRound || kind == PoolKind::kNaive; }

/// The settings to try after the colon.
std::span<const std::string_view> settings_to_try(PoolKind kind) {
  static constexpr std::array<std::string_view, 5> kCutoffs{"20", "22", "24", "26", "28"};
  static constexpr std::array<std::string_view, 4> kRoundings{"512KiB", "2MiB", "8MiB", "32MiB"};
  if (kind == PoolKind::kRound) return kCutoffs;
  if (kind == PoolKind::kNaive) return kRoundings;
  static constexpr std::array<std::string_view, 3> kSegments{"16MiB", "256MiB", "all"};
  if (kind == PoolKind::kBestFit) return kSegments;
  return {};
}

}  // namespace

PoolChoice parse_pool_choice(std::string_view flag, std::string_view text,
                             const PoolOptions& base) {
  const std::size_t colon = text.find(':');
  PoolChoice choice{.name = {}, .options = base};
  choice.options.kind = {parse_pool_kind(flag, text.substr(0, colon)), std::string(flag)};
  const PoolKind kind = choice.options.kind.value;
  if (colon != std::string_view::npos) {
    const std::string_view value = text.substr(colon + 1);
    if (kind == PoolKind::kRound) {
      choice.options.cutoff = {parse_cutoff(flag, value), std::string(flag)};
    } else if (kind == PoolKind::kNaive) {
      choice.options.large_round = {parse_large_round(flag, value), std::string(flag)};
    } else if (kind == PoolKind::kBestFit) {
      choice.options.segment = {parse_segment(flag, value), std::string(flag)};
    } else {
      refuse(flag, text, std::string(to_string(kind)) + " takes no setting after a colon");
    }
  }
  choice.options.validate();
  choice.name = to_string(kind);
  if (kind == PoolKind::kRound) choice.name += ":" + std::to_string(choice.options.cutoff.value);
  if (kind == PoolKind::kNaive && choice.options.large_round.value != mib(2)) {
    choice.name += ":" + typed_size(choice.options.large_round.value);
  }
  const Bytes segment = choice.options.segment.value;
  if (kind == PoolKind::kBestFit && segment == PoolOptions::kWholeBudget) choice.name += ":all";
  if (kind == PoolKind::kBestFit && segment != mib(64) && segment != PoolOptions::kWholeBudget) {
    choice.name += ":" + typed_size(segment);
  }
  return choice;
}

std::vector<PoolChoice> parse_pool_choices(std::string_view flag, std::string_view text,
                                           const PoolOptions& base) {
  std::vector<PoolChoice> choices;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    if (name == "all") {
      add_all(choices, flag, base);
    } else {
      add_once(choices, parse_pool_choice(flag, name, base));
    }
    if (comma == std::string_view::npos) return choices;
    text.remove_prefix(comma + 1);
  }
}

std::vector<PoolChoice> recommendable_choices(const PoolOptions& base) {
  constexpr std::string_view kName = "--recommend";
  std::vector<PoolChoice> choices;
  for (const PoolKind kind : pool_kinds()) {
    if (kind == PoolKind::kUnpooled) continue;
    const std::string name(to_string(kind));
    for (const std::string_view setting : settings_to_try(kind)) {
      add_once(choices, parse_pool_choice(kName, name + ":" + std::string(setting), base));
    }
    add_once(choices, parse_pool_choice(kName, name, base));
  }
  return choices;
}

std::string variables_of(const PoolChoice& choice) {
  const PoolOptions& options = choice.options;
  const PoolKind kind = options.kind.value;
  std::string text = "WEIR_POOL=" + std::string(to_string(kind));
  const auto add = [&text](const char* name, const std::string& value) {
    text += std::string(" ") + name + "=" + value;
  };
  if (kind == PoolKind::kRound) {
    add("WEIR_POOL_LINEAR_CUTOFF", std::to_string(options.cutoff.value));
  }
  if (kind == PoolKind::kBestFit) {
    const Bytes segment = options.segment.value;
    add("WEIR_POOL_SEGMENT_SIZE",
        segment == PoolOptions::kWholeBudget ? format_segment(segment) : typed_size(segment));
  }
  if (kind == PoolKind::kNaive) {
    add("WEIR_POOL_LARGE_ROUND_SIZE", typed_size(options.large_round.value));
  }
  if (has_page(kind) && options.page.source != "default") {
    add("WEIR_POOL_PAGE_SIZE", typed_size(options.page.value));
  }
  return text;
}

bool PoolChoice::by_default() const {
  const PoolOptions usual;
  const PoolKind kind = options.kind.value;
  if (has_page(kind) && options.page.value != usual.page.value) return false;
  if (kind == PoolKind::kRound) return options.cutoff.value == usual.cutoff.value;
  if (kind == PoolKind::kNaive) return options.large_round.value == usual.large_round.value;
  return kind != PoolKind::kBestFit || options.segment.value == usual.segment.value;
}

Candidate candidate_of(const PoolChoice& choice, const MakeUpstream& upstream, std::uint64_t lag) {
  return {choice.name, [options = choice.options, upstream, lag](Bytes capacity) {
            return std::make_unique<PoolSubject>(upstream(capacity), options, lag);
          }};
}

}  // namespace weir::replay
