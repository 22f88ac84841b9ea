#include "tools/replay/measure/pools.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "allocator/pool_kind.hpp"

namespace weir::replay {
namespace {

void add_once(std::vector<PoolChoice>& choices, PoolChoice choice) {
  const bool known = std::ranges::any_of(
      choices, [&](const PoolChoice& other) { return other.name == choice.name; });
  if (!known) choices.push_back(std::move(choice));
}

void add_all(std::vector<PoolChoice>& choices, std::string_view flag, const PoolOptions& base) {
  for (const KindOfPool& kind : kinds_of_pool()) {
    const std::string name(kind.name);
    add_once(choices, parse_pool_choice(flag, name, base));
    for (const std::string_view value : kind.beside) {
      add_once(choices, parse_pool_choice(flag, name + ":" + std::string(value), base));
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

/// Returns the setting's value as people type it.
std::string typed(const PoolSetting& setting, const PoolOptions& options) {
  std::string text = setting.text(options);
  const auto bytes = setting.is_size ? parse_whole(text) : std::nullopt;
  return bytes ? typed_size(Bytes{*bytes}) : text;
}

bool is_default(const PoolSetting& setting, const PoolOptions& options) {
  return setting.text(options) == setting.text({});
}

}  // namespace

PoolChoice parse_pool_choice(std::string_view flag, std::string_view text,
                             const PoolOptions& base) {
  const std::size_t colon = text.find(':');
  PoolChoice choice{.name = {}, .options = base};
  choice.options.kind = {parse_pool_kind(flag, text.substr(0, colon)), std::string(flag)};
  const KindOfPool& kind = kind_of_pool(choice.options.kind.value);
  if (colon != std::string_view::npos) {
    if (kind.main == nullptr) {
      refuse(flag, text, std::string(kind.name) + " takes no setting after a colon");
    }
    kind.main->set(choice.options, flag, text.substr(colon + 1));
  }
  choice.options.validate();
  choice.name = kind.name;
  if (kind.main != nullptr && (kind.always_named || !is_default(*kind.main, choice.options))) {
    choice.name += ":" + typed(*kind.main, choice.options);
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
  for (const KindOfPool& kind : kinds_of_pool()) {
    if (!kind.caches) continue;
    const std::string name(kind.name);
    for (const std::string_view value : kind.to_try) {
      add_once(choices, parse_pool_choice(kName, name + ":" + std::string(value), base));
    }
    add_once(choices, parse_pool_choice(kName, name, base));
  }
  return choices;
}

std::string variables_of(const PoolChoice& choice) {
  const PoolOptions& options = choice.options;
  const KindOfPool& kind = kind_of_pool(options.kind.value);
  std::string text = "WEIR_POOL=" + std::string(kind.name);
  const auto add = [&](const PoolSetting& setting) {
    text.append(" ").append(setting.variable).append("=").append(typed(setting, options));
  };
  if (kind.main != nullptr) add(*kind.main);
  for (const PoolSetting* setting : kind.settings) {
    if (setting != kind.main && setting->source(options) != "default") add(*setting);
  }
  return text;
}

bool PoolChoice::by_default() const {
  return std::ranges::all_of(
      kind_of_pool(options.kind.value).settings,
      [this](const PoolSetting* setting) { return is_default(*setting, options); });
}

Candidate candidate_of(const PoolChoice& choice, const MakeUpstream& upstream, std::uint64_t lag) {
  return {choice.name, [options = choice.options, upstream, lag](Bytes capacity) {
            return std::make_unique<PoolSubject>(upstream(capacity), options, lag);
          }};
}

}  // namespace weir::replay
