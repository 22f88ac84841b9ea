#pragma once

// Measures the memory that loading code takes, which the driver does not report: the device has
// less free afterwards. Programs load in parallel and no lock is held across a load, so overlapping
// loads are measured together and share the result.

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "tools/preload/context/account.hpp"

namespace weir::preload {

/// The largest believed size of one load, since other programs' memory is measured with it.
inline constexpr Bytes kMostOfAModule = mib(256);

/// A device's level according to the driver and to the account.
struct DeviceLevel {
  Bytes free;
  Bytes used;
};

/// Returns what loads took between two readings: the decrease of free memory that the account and
/// `counted` do not explain.
[[nodiscard]] constexpr Bytes taken_by_loads(DeviceLevel before, DeviceLevel after,
                                             Bytes counted) noexcept {
  const Bytes others = minus_or_zero(minus_or_zero(after.used, before.used), counted);
  return minus_or_zero(minus_or_zero(minus_or_zero(before.free, after.free), others), counted);
}

/// Returns the share of load `index` of `count` in `all`; the last gets the rest.
[[nodiscard]] constexpr Bytes part_of_load(Bytes all, std::size_t index,
                                           std::size_t count) noexcept {
  const Bytes each{all.count / count};
  return index + 1 < count ? each : minus_or_zero(all, each * (count - 1));
}

/// The loads of a process. Thread-safe. Callers ask the driver, outside its lock.
class Loads {
 public:
  /// A successful load, not counted yet.
  struct Loaded {
    std::uint64_t handle = 0;
    CUcontext context = nullptr;
  };
  /// Measures a group after this many loads have ended, even if others still run.
  static constexpr std::size_t kMostEnded = 16;

  /// Begins a load on the account's device. Returns true if free memory must be noted first.
  [[nodiscard]] bool begin(const Account& account) noexcept;
  void note_before(const Account& account, std::optional<Bytes> free) noexcept;
  /// Ends a load; `loaded` is empty if it failed. Returns true if the group must be measured now.
  [[nodiscard]] bool end(const Account& account, std::optional<Loaded> loaded) noexcept;
  /// Divides what the ended loads took, by `free`, and calls `count(loaded, bytes)` for each.
  template <typename Count>
  void measure(Account& account, std::optional<Bytes> free, const Count& count) noexcept {
    const Lock lock(mutex_);  // held until all are counted, since one may be unloaded at once
    Group* const group = find(account);
    if (group == nullptr) return;
    const std::vector<Loaded> ended = std::move(group->ended);
    group->ended.clear();
    const Bytes all = take(*group, account, free, ended.size());
    for (std::size_t i = 0; i < ended.size(); ++i) {
      const Bytes part = part_of_load(all, i, ended.size());
      if (part.count != 0) count(ended[i], part);
    }
  }
  /// Call on unloading, before the driver can reuse the handle: it is not counted any more.
  void forget(std::uint64_t handle) noexcept;

 private:
  /// Overlapping loads of a device.
  struct Group {
    const Account* account = nullptr;
    std::size_t under_way = 0;
    std::optional<DeviceLevel> before;
    Bytes counted;              ///< since the first reading
    std::vector<Loaded> ended;  ///< since the last counting
  };
  [[nodiscard]] Group* find(const Account& account) noexcept WEIR_REQUIRES(mutex_);
  [[nodiscard]] static Bytes take(Group& group, Account& account, std::optional<Bytes> free,
                                  std::size_t loads) noexcept;

  Mutex mutex_{LockRank::kSlab};  // before those of the account, which `count` takes
  std::vector<Group> groups_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::preload
