#include "watchdog.hpp"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "delays.hpp"

namespace weir::testing {

std::optional<std::string> Stillness::look(Time now) {
  const std::uint64_t moves = moves_.load(std::memory_order_relaxed);
  if (!since_ || moves != seen_) {
    seen_ = moves;
    since_ = now;
  }
  if (now - *since_ < longest_) return std::nullopt;
  return "watchdog: nothing has moved for " +
         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now - *since_).count()) +
         " s, after " + std::to_string(moves) + " ends\n" + who_waits(now);
}

Watchdog::Watchdog(std::chrono::nanoseconds longest, std::function<std::string()> more)
    : stillness_(longest), more_(std::move(more)), looks_([this](const std::stop_token& stop) {
        const NamedThread name("watchdog");
        std::mutex mutex;
        std::condition_variable_any ends;
        std::unique_lock lock(mutex);
        while (!ends.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; })) {
          if (stop.stop_requested()) return;
          const auto report = stillness_.look(std::chrono::steady_clock::now());
          if (!report) continue;
          const std::string all = *report + (more_ ? more_() : std::string());
          std::fputs(all.c_str(), stderr);
          std::abort();
        }
      }) {}

}  // namespace weir::testing
