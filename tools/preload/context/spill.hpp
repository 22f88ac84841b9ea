#pragma once

// The last resort of a request that nothing else serves, where the user wants it: memory that stays
// on the host, which the device reads and writes over its link. Slow, but the run ends.

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
#include "tools/preload/context/give_back_gate.hpp"

namespace weir::preload {

/// A request that failed in all stages of the pool.
struct SpillRequest {
  Bytes asked;
  Bytes budget;          ///< of the device
  Bytes spilled;         ///< on the host already, also what is freed and not given back
  Bytes host_available;  ///< as the system says; what nobody has written yet is still in it
  Bytes refused;         ///< the thread's last request that was refused here, nothing served since
};
enum class SpillDecision : std::uint8_t {
  kServe,
  kTooLarge,  ///< more than half of the budget: a framework's reserve, or a probe
  kProbe,     ///< a step of a search for the largest block
  kHostFull,
};
/// A framework that looks for the largest block asks for very much, and then for somewhat less, to
/// half, until it is served. So what is at least half of a request that was just refused is
/// refused. At most half of what the host has is taken: the rest of the machine goes on.
[[nodiscard]] SpillDecision decide_spill(const SpillRequest& request) noexcept;

/// What a text in the form of /proc/meminfo calls available; zero where it does not say.
[[nodiscard]] Bytes parse_available(std::string_view meminfo) noexcept;
/// What the control group that `cgroup` names (a text in the form of /proc/self/cgroup) may still
/// take: of it and all above it, below `root`, the least. Pages of files that are not in use count
/// as free, as the system gives them up. Nothing where no group of version 2 has a limit.
[[nodiscard]] std::optional<Bytes> group_available(const char* root,
                                                   std::string_view cgroup) noexcept;
/// What the host could give now: the system's figure, or the control groups' where that is less.
[[nodiscard]] Bytes host_available() noexcept;

/// Memory on the host that was given for device memory. Thread-safe.
class Spilled {
 public:
  /// `max_wait`: what one request may wait at most.
  Spilled(const Driver& driver, GiveBackGate& gate, std::chrono::nanoseconds max_wait) noexcept
      : driver_(driver), gate_(gate), max_wait_(max_wait) {}
  /// Whether a device and the host can use managed memory at once. Says so once, where not.
  [[nodiscard]] bool is_possible(int device) noexcept;
  /// Serves a request that failed, if it may. False: it fails.
  [[nodiscard]] bool allocate(Arena& arena, CUdeviceptr& pointer, Bytes bytes) noexcept;
  /// The thread was served by the pool: no search is under way.
  static void note_served() noexcept;

  struct Owner {
    Arena* arena = nullptr;
    bool freed = false;  ///< before
  };
  /// Begins the free of what was given at `pointer`; nothing where nothing was.
  [[nodiscard]] std::optional<Owner> begin_free(CUdeviceptr pointer) noexcept;
  /// It goes back to the driver once the device has passed `point`; without one it stays given.
  void end_free(CUdeviceptr pointer, std::optional<Point> point) noexcept;
  /// Gives back what the device has passed. Cheap where nothing is freed. False where a context
  /// ends or another thread gives back, for longer than `most`: then it is for a later call.
  bool give_back(std::chrono::nanoseconds most = {}) noexcept;
  /// Whether `address` lies in what was given and is not yet the driver's again. Waits, for a
  /// bounded time, where the driver is taking it back just now.
  [[nodiscard]] bool has(CUdeviceptr address) const noexcept;
  /// The context is gone, and what was given there.
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
  [[nodiscard]] bool may_serve(Arena& arena, Bytes bytes);
  [[nodiscard]] CUdeviceptr take(const Arena& arena, Bytes bytes) const noexcept;
  void advise(CUdeviceptr pointer, Bytes bytes, int device) const noexcept;
  void say_first(const Account& account, Bytes bytes) noexcept;
  [[nodiscard]] std::vector<Waiting> waiting() const;
  /// Waits for the device to pass a free of the arena's; false where there is none, or in vain.
  [[nodiscard]] bool wait_for_one(Arena& arena);
  void give_back_passed();
  /// Waits, for a bounded time, until the driver is not taking `address` back. Whose it is
  /// afterwards is for the driver to say: it may give the address to the program.
  void await_return(Lock& lock, CUdeviceptr address) const;
  void return_to_driver(CUdeviceptr pointer, std::optional<Point> point) noexcept;
  /// What was given is no more: it is not counted any longer.
  void discount(const Block& block) noexcept;

  const Driver& driver_;
  GiveBackGate& gate_;
  const std::chrono::nanoseconds max_wait_;
  std::atomic<std::uint64_t> asked_{0};     ///< a bit for each device: whether it was asked
  std::atomic<std::uint64_t> possible_{0};  ///< and what it said
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
