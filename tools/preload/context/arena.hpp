#pragma once

// All that Weir has in one context: pools over the driver's memory, the fences of its streams, and
// the batches that its program marks.

#include <atomic>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "scheduler/admission/admission.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/pools.hpp"
#include "tools/preload/context/upstream.hpp"
#include "tools/preload/report/settings.hpp"

namespace weir::preload {

class Arena;

/// A batch that a thread has begun and not ended.
struct OpenBatch {
  Arena* arena = nullptr;
  TicketRef ticket;
  Fences::Clock::time_point began;
  TimelineMarker* marker = nullptr;  ///< that was told of it
};

/// Thread-safe. Never destroyed: a program's last frees may come when it is already ending.
class Arena {
 public:
  Arena(const Driver& driver, CUcontext context, Account& account, const Settings& settings);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Memory for work on `stream`, or for anybody (`fences().sync()`). The driver's own code where
  /// there is none, and then `report` says why if this is the first time.
  [[nodiscard]] CUresult allocate(CUdeviceptr& pointer, std::size_t bytes, StreamId stream,
                                  std::string& report) noexcept;
  /// Frees in the order of `stream`; nothing where it is not from here.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr pointer, StreamId stream) noexcept;
  /// Whether `address` lies in anything that is served from here, handed out or not: a free of it
  /// is never the driver's to answer.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept {
    return upstream_.serves(address);
  }
  /// Work was enqueued on `stream`: a fence for it, and perhaps a wait.
  void note_launches(StreamId stream) noexcept;
  /// Whether memory could be taken out of the pool for good.
  enum class Shared {
    kNotOurs,
    kInOrder,  ///< no: it was allocated in stream order
    kPart,     ///< no: it is a part of what the driver gave, or nobody has it
    kGiven,
  };
  /// Tries it with what the driver gave at `base`.
  [[nodiscard]] Shared share(CUdeviceptr base, Bytes& size) noexcept;

  /// The memory at `pointer` is a captured graph's, too: it is never handed out again.
  void keep(CUdeviceptr pointer) noexcept;
  [[nodiscard]] bool is_kept(CUdeviceptr pointer) const noexcept;

  [[nodiscard]] std::optional<OpenBatch> begin_batch(std::string_view kind) noexcept;
  void end_batch(const OpenBatch& batch) noexcept;

  /// The account's budget is this one's, too, from now on.
  void follow_budget();
  /// The context is gone, with all that it had.
  void forget() noexcept;

  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  [[nodiscard]] Account& account() noexcept { return account_; }
  [[nodiscard]] Fences& fences() noexcept { return fences_; }
  [[nodiscard]] DriverUpstream& upstream() noexcept { return upstream_; }
  [[nodiscard]] Pools& pool() noexcept { return pools_; }
  [[nodiscard]] const Pools& pool() const noexcept { return pools_; }
  /// Since the beginning, whatever the program did to the peaks meanwhile; waits of requests for
  /// what other pools free are counted, too.
  [[nodiscard]] Statistics statistics() const;
  [[nodiscard]] Waits paced() const;
  /// Requests that waited for what other pools of the device free. In `statistics`, too.
  [[nodiscard]] Waits waits_for_others() const;
  [[nodiscard]] Waits batch_waits() const;
  [[nodiscard]] std::uint64_t batches() const noexcept { return batches_.load(); }

 private:
  struct Charge {
    TicketRef ticket;
    Bytes bytes;
  };
  /// What a failed request is reported with; counts the failure where the pool has not.
  void tell(const Attempt& attempt, const std::exception& why, std::string& report) noexcept;
  void charge(void* pointer, Bytes bytes) noexcept;
  [[nodiscard]] std::optional<Charge> take_charge(void* pointer) noexcept;
  [[nodiscard]] std::optional<TicketRef> ticket_here() const;
  void hold_back();
  /// Waits for work after which another pool of the device can give something back. False where
  /// there is none, or its end was not to be waited for.
  [[nodiscard]] bool await_others();

  const CUcontext context_;
  Account& account_;
  const Settings& settings_;
  Fences fences_;
  DriverUpstream upstream_;
  Pools pools_;
  class BoundedProgress;
  std::unique_ptr<BoundedProgress> bounded_;
  Admission admission_;

  std::atomic<std::uint64_t> batches_{0};
  std::atomic<std::uint64_t> charged_blocks_{0};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<TicketRef> open_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<void*, Charge> charged_ WEIR_GUARDED_BY(mutex_);
  std::unordered_set<CUdeviceptr> kept_ WEIR_GUARDED_BY(mutex_);
  Waits paced_ WEIR_GUARDED_BY(mutex_);
  Waits for_others_ WEIR_GUARDED_BY(mutex_);  ///< requests that waited for what other pools free
  /// A point for which a wait ran out: nobody is paced for it again.
  std::optional<Point> given_up_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t give_ups_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::preload
