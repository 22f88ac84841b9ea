#include "allocator/base/tick_clock.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>

namespace weir {
namespace {

/// The kernel keeps time by the counter only if it is even and in step.
bool kernel_trusts_the_counter() {
  std::FILE* const file =
      std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
  if (file == nullptr) return false;
  std::array<char, 32> name{};
  const bool read = std::fgets(name.data(), name.size(), file) != nullptr;
  std::fclose(file);
  return read && std::string_view(name.data()) == "tsc\n";
}

constexpr std::uint64_t kLearn = 1'000'000;  ///< ns; reading the clocks takes some 50

}  // namespace

TickClock::TickClock()
    : counter_(kernel_trusts_the_counter()), began_(now()), began_ns_(monotonic()) {
  if (!counter_) return;
  while (monotonic() - began_ns_ < kLearn) continue;
}

double TickClock::ns_per_tick() const noexcept {
  if (!counter_) return 1;
  const std::uint64_t ticks = counter() - began_;
  return static_cast<double>(monotonic() - began_ns_) / static_cast<double>(ticks);
}

std::uint64_t TickClock::monotonic() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace weir
