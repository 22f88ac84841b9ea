#include "tools/replay/pools.hpp"

#include <algorithm>
#include <memory>

namespace weir::replay {
namespace {

void add_once(std::vector<PoolChoice>& choices, PoolChoice choice) {
  const bool known = std::ranges::any_of(
      choices, [&](const PoolChoice& other) { return other.name == choice.name; });
  if (!known) choices.push_back(std::move(choice));
}

/// `round` with both cutoffs: 24 is the default, and 28 is what the fewest large sizes gain by.
void add_all(std::vector<PoolChoice>& choices, std::string_view flag, const PoolOptions& base) {
  for (const PoolKind kind : pool_kinds()) {
    const std::string name(to_string(kind));
    add_once(choices, parse_pool_choice(flag, name, base));
    if (kind == PoolKind::kRound) {
      add_once(choices, parse_pool_choice(flag, name + ":24", base));
      add_once(choices, parse_pool_choice(flag, name + ":28", base));
    }
  }
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
    } else {
      refuse(flag, text, std::string(to_string(kind)) + " takes nothing behind a colon");
    }
  }
  choice.options.validate();
  choice.name = to_string(kind);
  if (kind == PoolKind::kRound) choice.name += ":" + std::to_string(choice.options.cutoff.value);
  if (kind == PoolKind::kNaive && choice.options.large_round.value != mib(2)) {
    choice.name += ":" + format_bytes(choice.options.large_round.value);
    std::erase(choice.name, ' ');
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

Candidate candidate_of(const PoolChoice& choice, const MakeUpstream& upstream, std::uint64_t lag) {
  return {choice.name, [options = choice.options, upstream, lag](Bytes capacity) {
            return std::make_unique<PoolSubject>(upstream(capacity), options, lag);
          }};
}

}  // namespace weir::replay
