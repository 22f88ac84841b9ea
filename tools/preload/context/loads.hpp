#pragma once

// What loads of code take of a device: the driver does not say, so it is measured by what the
// device has less afterwards. Programs load in parallel, and no lock is held across a load: those
// that overlap are measured together, and what they took is divided among them.

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "tools/preload/context/account.hpp"

namespace weir::preload {

/// What other programs do to the device is measured with it: of one load no more is believed.
inline constexpr Bytes kMostOfAModule = mib(256);

/// A device as the driver and the books have it.
struct DeviceLevel {
  Bytes free;
  Bytes used;
};

/// What loads took between two looks at a device, but for `counted`, which is in the books already:
/// the device has less, and what else the books took does not explain it.
[[nodiscard]] constexpr Bytes taken_by_loads(DeviceLevel before, DeviceLevel after,
                                             Bytes counted) noexcept {
  const Bytes others = minus_or_zero(minus_or_zero(after.used, before.used), counted);
  return minus_or_zero(minus_or_zero(minus_or_zero(before.free, after.free), others), counted);
}

/// The part of the one at `index` among `count` loads that took `all`; the last has the rest.
[[nodiscard]] constexpr Bytes part_of_load(Bytes all, std::size_t index,
                                           std::size_t count) noexcept {
  const Bytes each{all.count / count};
  return index + 1 < count ? each : minus_or_zero(all, each * (count - 1));
}

/// The loads of a process. Thread-safe; the driver is asked by the callers, outside its lock.
class Loads {
 public:
  /// A load that succeeded, not counted yet.
  struct Loaded {
    std::uint64_t handle = 0;
    CUcontext context = nullptr;
  };
  /// So many of a group may have ended before it is measured while others still load.
  static constexpr std::size_t kMostEnded = 16;

  /// A load on the account's device begins. True: what is free has to be noted before it does.
  [[nodiscard]] bool begin(const Account& account) noexcept;
  void note_before(const Account& account, std::optional<Bytes> free) noexcept;
  /// It has ended; nothing where it failed. True: the group is to be measured now.
  [[nodiscard]] bool end(const Account& account, std::optional<Loaded> loaded) noexcept;
  /// Counts what those that ended took, as `free` says, by `count(loaded, bytes)`.
  template <typename Count>
  void measure(Account& account, std::optional<Bytes> free, const Count& count) noexcept {
    const Lock lock(mutex_);  // and until they are counted: one may be unloaded at once
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
  /// It is unloaded: what was not counted yet never is. To be called before the driver may give
  /// the same handle again.
  void forget(std::uint64_t handle) noexcept;

 private:
  /// The loads of a device that overlap.
  struct Group {
    const Account* account = nullptr;
    std::size_t under_way = 0;
    std::optional<DeviceLevel> before;
    Bytes counted;              ///< since then
    std::vector<Loaded> ended;  ///< since what was counted last
  };
  [[nodiscard]] Group* find(const Account& account) noexcept WEIR_REQUIRES(mutex_);
  [[nodiscard]] static Bytes take(Group& group, Account& account, std::optional<Bytes> free,
                                  std::size_t loads) noexcept;

  Mutex mutex_{LockRank::kSlab};  // before those of books, which `count` writes
  std::vector<Group> groups_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::preload
