#include "allocator/base/time_text.hpp"

#include <array>
#include <cstdint>

#include "allocator/base/setting.hpp"

namespace weir {
namespace {

struct TimeUnit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<TimeUnit, 3> kTimeUnits{
    {{"ms", 1'000'000}, {"us", 1'000}, {"s", 1'000'000'000}}};

}  // namespace

std::optional<std::chrono::nanoseconds> parse_time(std::string_view text) {
  constexpr std::uint64_t kLongest = 3600ULL * 1'000'000'000ULL;
  for (const TimeUnit& unit : kTimeUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto whole = parse_whole(text.substr(0, text.size() - unit.name.size()));
    const auto factor = static_cast<std::uint64_t>(unit.nanoseconds);
    if (!whole || *whole == 0 || *whole > kLongest / factor) return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(*whole * factor));
  }
  return std::nullopt;
}

std::string exact_time(std::chrono::nanoseconds time) {
  const auto us = time.count() / 1000;
  if (us % 1'000'000 == 0) return std::to_string(us / 1'000'000) + "s";
  if (us % 1'000 == 0) return std::to_string(us / 1'000) + "ms";
  return std::to_string(us) + "us";
}

}  // namespace weir
