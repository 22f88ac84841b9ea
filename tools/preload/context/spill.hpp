#pragma once

// The last resort of a failed request, if the user enables it: host memory that the device reads
// and writes over its link. Slow, but the run finishes.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/preload/context/arena.hpp"
#include "tools/preload/context/context_gate.hpp"

namespace weir::preload {

/// A request that failed in all stages of the pool.
struct SpillRequest {
  Bytes asked;
  Bytes budget;          ///< of the device
  Bytes spilled;         ///< now on the host, including freed and not released
  Bytes host_available;  ///< as the system says; pages not yet written still count
  Bytes refused;         ///< the thread's last request refused here, if nothing was served since
};
enum class SpillDecision : std::uint8_t {
  kServe,
  kTooLarge,  ///< over half of the budget: a framework's reserve, or a probe
  kProbe,     ///< a step in a search for the largest block
  kHostFull,
};
/// A framework that looks for the largest block asks for a huge size, then for less, down to half,
/// until it is served. So refuses a request of at least half of one just refused. Takes at most
/// half of the host's memory, for the rest of the machine.
[[nodiscard]] SpillDecision decide_spill(const SpillRequest& request) noexcept;

/// Returns the available memory of a text like /proc/meminfo, or zero.
[[nodiscard]] Bytes parse_available(std::string_view meminfo) noexcept;
/// Returns what the control group in `cgroup` (a text like /proc/self/cgroup) may still take: the
/// minimum of it and its ancestors below `root`. Inactive file pages count as free, because the
/// system drops them. Returns nullopt if no version 2 group has a limit.
[[nodiscard]] std::optional<Bytes> group_available(const char* root,
                                                   std::string_view cgroup) noexcept;
/// Returns what the host could give now: the smaller of the system's and the control groups'
/// figure.
[[nodiscard]] Bytes host_available() noexcept;

/// Host memory given for device memory. Thread-safe.
class Spilled {
 public:
  using Clock = std::chrono::steady_clock;

  Spilled(const Driver& driver, ContextGate& gate) noexcept : driver_(driver), gate_(gate) {}
  /// Returns whether device and host can use managed memory at once. Logs once if not.
  [[nodiscard]] bool is_possible(int device) noexcept;
  /// Serves a failed request if allowed, else returns false.
  [[nodiscard]] bool allocate(Call& call, Arena& arena, CUdeviceptr& pointer, Bytes bytes) noexcept;
  /// Call when the pool served the thread: no search is in progress.
  static void note_served() noexcept;

  struct Owner {
    Arena* arena = nullptr;
    bool freed = false;  ///< earlier
  };
  /// Begins to free the memory at `pointer`. Returns nullopt if it is not from here.
  [[nodiscard]] std::optional<Owner> begin_free(CUdeviceptr pointer) noexcept;
  /// Releases it to the driver once the device has passed `point`; without a point, never.
  void end_free(CUdeviceptr pointer, std::optional<Point> point) noexcept;
  /// Releases what the device has passed, if that needs no wait for it or its arena has `settled`
  /// (DriverUpstream::settle). Cheap if nothing was freed. Returns false if until then a context is
  /// ending or another thread releases: a later call does it then.
  bool release(Clock::time_point until = {}, const Arena* settled = nullptr) noexcept;
  /// Returns whether `address` lies in memory from here that the driver does not have back. While
  /// the driver takes it, waits for a bounded time.
  [[nodiscard]] bool has(CUdeviceptr address) const noexcept;
  /// Drops the context and what was given there.
  void forget(CUcontext context) noexcept;

 private:
  struct Block {
    Bytes bytes;
    Arena* arena = nullptr;
    bool freed = false;
    std::optional<Point> point;  ///< where the free is complete
  };
  struct Waiting {
    CUdeviceptr pointer;
    Block block;
  };
  [[nodiscard]] bool may_serve(Arena& arena, Bytes bytes, const WaitLimit& limit);
  [[nodiscard]] CUdeviceptr take(const Arena& arena, Bytes bytes) const noexcept;
  void advise(CUdeviceptr pointer, Bytes bytes, int device) const noexcept;
  void say_first(const Account& account, Bytes bytes) noexcept;
  [[nodiscard]] std::vector<Waiting> waiting() const;
  /// Waits until the device passes one of the arena's frees. Returns false if there is none or the
  /// wait failed.
  [[nodiscard]] bool wait_for_one(Arena& arena, const WaitLimit& limit) const;
  void release_passed(const Arena* settled);
  /// Waits, for a bounded time, while the driver takes `address` back. It may then give the address
  /// to the program.
  void await_return(Lock& lock, CUdeviceptr address) const;
  void return_to_driver(CUdeviceptr pointer, std::optional<Point> point) noexcept;
  void discount(const Block& block) noexcept;

  const Driver& driver_;
  ContextGate& gate_;
  std::atomic<std::uint64_t> asked_{0};     ///< one bit per device: it was asked
  std::atomic<std::uint64_t> possible_{0};  ///< and its answer
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> freed_{0};  ///< blocks that wait for the device
  std::atomic<bool> said_{false};
  mutable Mutex mutex_{LockRank::kStream};
  std::map<CUdeviceptr, Block> given_ WEIR_GUARDED_BY(mutex_);
  std::multimap<CUdeviceptr, Block> returning_
      WEIR_GUARDED_BY(mutex_);                    ///< the driver is freeing it
  mutable std::condition_variable_any returned_;  ///< of returning_
};

}  // namespace weir::preload
