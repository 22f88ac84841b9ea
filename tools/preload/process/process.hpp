#pragma once

// The swap-in of this process: its parts, and what concerns all of them.

#include <atomic>
#include <memory>
#include <string>

#include "tools/preload/context/loads.hpp"
#include "tools/preload/context/passed.hpp"
#include "tools/preload/process/contexts.hpp"
#include "tools/preload/process/devices.hpp"
#include "tools/preload/process/ownership.hpp"

namespace weir::preload {

/// Created by the first call that needs it, never destroyed. Thread-safe.
class Process {
 public:
  /// Null means: pass the call to the driver. That is so in a forked child, inside our own calls,
  /// and without a driver. A bad setting ends the program with one line and exit code 2, before any
  /// work could be lost.
  [[nodiscard]] static Process* get() noexcept;
  /// The same, but null if nothing is set up yet.
  [[nodiscard]] static Process* get_if_any() noexcept;
  /// Whether this is a forked child of a process that was set up.
  [[nodiscard]] static bool is_forked_child() noexcept;

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] Devices& devices() noexcept { return devices_; }
  [[nodiscard]] Contexts& contexts() noexcept { return contexts_; }
  [[nodiscard]] Ownership& ownership() noexcept { return ownership_; }
  [[nodiscard]] PassedTable& passed() noexcept { return passed_; }
  [[nodiscard]] Loads& loads() noexcept { return loads_; }
  [[nodiscard]] const Spilled& spilled() const noexcept { return spilled_; }
  /// Separates the ends of contexts from releases in them.
  [[nodiscard]] ContextGate& gate() noexcept { return gate_; }

  /// Allocates in the arena's context, in host memory if need be and allowed.
  [[nodiscard]] CUresult allocate(Call& call, Arena& arena, CUdeviceptr& pointer, std::size_t bytes,
                                  StreamId stream) noexcept;
  /// Counts `bytes` of a device's budget, taken before and served by the driver under `handle`.
  /// They end with `context`. `pool`, `own`: see PassedTable.
  void count(Account& account, Kind kind, Bytes bytes, std::uint64_t handle, CUcontext context,
             CUmemoryPool pool = nullptr, OwnMemory* own = nullptr) noexcept;
  /// Returns the device whose default pool this is; -1 if none.
  [[nodiscard]] int default_pool_of(CUmemoryPool pool) noexcept;
  /// Returns the device that has this pool of the program's; null if it is none.
  [[nodiscard]] Device* device_of(CUmemoryPool pool) const noexcept;
  /// Call when the program has destroyed a pool of `device`, which had handed out `used` bytes.
  void end_own_pool(Device& device, CUmemoryPool pool, Bytes used) noexcept;
  /// Call when captures may have ended: does the postponed work in every context without a captured
  /// stream.
  void note_end_of_captures() noexcept;
  /// Drops a context that has ended.
  void forget(CUcontext context) noexcept;

  /// Says once that a request failed, and why.
  void report(Device& device, const std::string& text) noexcept;
  /// Adds the figures of the devices in use.
  void add_figures(LiveFigures& figures) const;
  [[nodiscard]] Summary summary() const;

 private:
  Process(const Driver& driver, Settings settings);
  static void set_up() noexcept;
  /// Releases what captures delayed.
  void release_held();
  void say_beyond(const Account& account, Bytes bytes) noexcept;
  /// Writes the summary if wanted and possible. The program's end waits for it for a bounded time.
  void at_exit() const noexcept;

  const Driver& driver_;
  const Settings settings_;
  ContextGate gate_;
  PassedTable passed_;
  Loads loads_;
  Spilled spilled_;
  Devices devices_;
  Contexts contexts_;
  Ownership ownership_;
  std::atomic<bool> reported_{false};
  std::atomic<bool> told_beyond_{false};
};

}  // namespace weir::preload
