#include "tools/timeline/recorder/settings.hpp"

#include <unistd.h>

#include <array>
#include <charconv>

namespace weir::timeline {
namespace {

constexpr Bytes kSmallestBuffer = mib(1);
constexpr std::string_view kRanges =
    "a range of batches: 10:20 is 10 to 19, 10: is from 10 on, :20 is all before 20";

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string rank_in_name(const Setting<std::string>& file, const Environment& environment) {
  if (const auto rank = find_rank(environment)) return std::to_string(*rank);
  refuse(file.source, file.value,
         "a name without %r, or with one of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID "
         "and LOCAL_RANK set");
}

}  // namespace

NamedFormat parse_format(std::string_view name, std::string_view text) {
  if (const auto found = find_format(text, FormatUse::kRecord)) return *found;
  refuse(name, text, "the name of a file that ends in " + list_suffixes(FormatUse::kRecord));
}

std::string parse_timeline_file(std::string_view name, std::string_view text) {
  (void)parse_format(name, text);
  return std::string(text);
}

std::optional<BatchRange> parse_batch_range(std::string_view name, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.size() == 1) refuse(name, text, kRanges);
  BatchRange range;
  const std::string_view first = text.substr(0, colon);
  const std::string_view end = text.substr(colon + 1);
  if (!first.empty()) {
    const auto number = parse_number(first);
    if (!number) refuse(name, text, kRanges);
    range.first = *number;
  }
  if (!end.empty()) {
    const auto number = parse_number(end);
    if (!number) refuse(name, text, kRanges);
    range.end = *number;
  }
  if (range.first >= range.end) refuse(name, text, kRanges);
  return range;
}

Bytes parse_timeline_buffer(std::string_view name, std::string_view text) {
  auto bytes = parse_bytes(text);
  if (const auto whole = parse_whole(text)) bytes = Bytes{*whole};
  if (!bytes || *bytes < kSmallestBuffer) refuse(name, text, "a size of 1MiB or more");
  return *bytes;
}

TimelineSettings TimelineSettings::from_environment(const Environment& environment) {
  TimelineSettings settings;
  read_setting(settings.file, environment, {"WEIR_TIMELINE"}, parse_timeline_file);
  read_setting(settings.batches, environment, {"WEIR_TIMELINE_BATCHES"}, parse_batch_range);
  read_setting(settings.buffer, environment, {"WEIR_TIMELINE_BUFFER"}, parse_timeline_buffer);
  return settings;
}

std::optional<std::uint32_t> find_rank(const Environment& environment) {
  for (const char* name :
       {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK"}) {
    const char* text = environment(name);
    if (text == nullptr) continue;
    if (const auto rank = parse_number(text)) return rank;
  }
  return std::nullopt;
}

std::string expand_name(const Setting<std::string>& file, const Environment& environment) {
  const std::string name = parse_timeline_file(file.source, file.value);
  std::string path;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char what = name[i] == '%' && i + 1 < name.size() ? name[i + 1] : '\0';
    if (what == 'p') {
      path += std::to_string(getpid());
    } else if (what == 'r') {
      path += rank_in_name(file, environment);
    } else if (what == '%') {
      path += '%';
    } else {
      path += name[i];
      continue;
    }
    ++i;
  }
  return path;
}

std::string name_of_path(std::string_view path) {
  std::string name;
  for (const char each : path) name.append(each == '%' ? 2 : 1, each);
  return name;
}

}  // namespace weir::timeline
