#include "allocator/share/share_setting.hpp"

#include <grp.h>
#include <unistd.h>

#include <vector>

namespace weir {
namespace {

std::string parse_group(std::string_view name, std::string_view text) {
  if (text.find(':') != std::string_view::npos)
    refuse(name, text, "the name of a group, or its number");
  return std::string(text);
}

std::optional<std::uint32_t> number_of_group(const std::string& text) {
  if (const auto number = parse_whole(text)) {
    if (*number > UINT32_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(*number);
  }
  group found{};
  group* result = nullptr;
  std::vector<char> place(65536);
  if (getgrnam_r(text.c_str(), &found, place.data(), place.size(), &result) != 0)
    return std::nullopt;
  return result != nullptr ? std::optional(result->gr_gid) : std::nullopt;
}

}  // namespace

std::string parse_share(std::string_view name, std::string_view text) {
  constexpr std::size_t kLongest = 56;  // with ".gpu1234" it still is a share's name
  if (!is_share_name(text) || text.size() > kLongest) {
    refuse(name, text, "1 to 56 letters, digits, '.', '_' and '-'");
  }
  return std::string(text);
}

ShareSettings ShareSettings::from_environment(const Environment& environment) {
  ShareSettings settings;
  read_setting(settings.name, environment, {"WEIR_SHARE"}, parse_share);
  read_setting(settings.floor, environment, {"WEIR_SHARE_FLOOR"}, parse_budget);
  read_setting(settings.group, environment, {"WEIR_SHARE_GROUP"}, parse_group);
  return settings;
}

ShareId ShareSettings::id(unsigned device) const {
  const std::string suffix = device == 0 ? "" : ".gpu" + std::to_string(device - 1);
  ShareId id{.name = name.value + suffix, .owner = {.id = geteuid()}};
  if (group.value.empty()) return id;
  const auto number = number_of_group(group.value);
  if (!number) refuse(group.source, group.value, "the name of a group, or its number");
  id.owner = {.id = *number, .is_group = true};
  return id;
}

Bytes ShareSettings::floor_in(Bytes budget) const {
  const BudgetRequest& asked = floor.value;
  if (asked.percent <= 0 && asked.bytes > budget) {
    refuse(floor.source, format_bytes(asked.bytes),
           "at most the shared budget, " + format_bytes(budget));
  }
  return resolve_budget(asked, budget, floor.source);
}

}  // namespace weir
