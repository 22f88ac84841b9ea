#pragma once

// The devices of the process.

#include <condition_variable>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "tools/preload/context/device.hpp"

namespace weir::preload {

/// Ends the program with one line and exit code 2. For settings that fit no device and the like.
[[noreturn]] void refuse_to_go_on(const char* why) noexcept;

/// Devices are known from their first use on. Thread-safe.
class Devices {
 public:
  Devices(const Driver& driver, const Settings& settings, ContextGate& gate) noexcept
      : driver_(driver), settings_(settings), gate_(gate) {}

  /// Returns a device; null if the driver does not know it.
  [[nodiscard]] Device* get(int number) noexcept;
  /// The same for callers that ask for no memory: null if the device would have to attach to a
  /// share first, which takes a floor there.
  [[nodiscard]] Device* without_attaching(int number) noexcept;
  /// Returns the device of the current context; null without one.
  [[nodiscard]] Device* current() noexcept;
  [[nodiscard]] std::vector<Device*> all() const;
  /// Returns those that have or had an arena.
  [[nodiscard]] std::vector<Device*> in_use() const;
  /// Returns the budget that the program sees of a device with `total` bytes. Attaches to no share.
  [[nodiscard]] Bytes visible_budget(int number, Bytes total) noexcept;
  /// Device::keep_budget of each.
  void keep_budgets(std::chrono::nanoseconds most = {}) noexcept;

 private:
  [[nodiscard]] std::unique_ptr<Device> make(int number, Bytes total) WEIR_EXCLUDES(mutex_);

  const Driver& driver_;
  const Settings& settings_;
  ContextGate& gate_;
  mutable Mutex mutex_{LockRank::kOrder};
  std::vector<std::unique_ptr<Device>> devices_ WEIR_GUARDED_BY(mutex_);
  std::vector<int> becoming_known_ WEIR_GUARDED_BY(mutex_);
  std::condition_variable_any made_;
};

}  // namespace weir::preload
