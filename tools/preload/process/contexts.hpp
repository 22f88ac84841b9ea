#pragma once

// The contexts of the process and what was granted between them.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tools/preload/context/arena.hpp"
#include "tools/preload/context/primary_contexts.hpp"
#include "tools/preload/context/spill.hpp"
#include "tools/preload/process/devices.hpp"

namespace weir::preload {

/// A stream and its context's arena; none if it has no context or host memory is short.
struct Located {
  Arena* arena = nullptr;
  StreamId stream{};
};

/// Arenas are made by the first use of their context, and never destroyed. Thread-safe.
class Contexts {
 public:
  Contexts(const Driver& driver, const Settings& settings, Devices& devices,
           Spilled& spilled) noexcept
      : driver_(driver),
        settings_(settings),
        devices_(devices),
        spilled_(spilled),
        primaries_(driver) {}

  /// Returns the current context; null if there is none.
  [[nodiscard]] CUcontext current_context() const noexcept;
  /// Returns the current context's arena, and makes it if needed; null without a current context.
  [[nodiscard]] Arena* current() noexcept;
  /// Returns the arena of the context of `stream`, which need not be current. A default stream is
  /// of the current context.
  [[nodiscard]] Located locate(CUstream stream, bool per_thread) noexcept;
  /// Returns the arena of the primary context of `device`; null if that is not active.
  [[nodiscard]] Arena* primary(int device) noexcept;
  /// Returns every arena whose context exists.
  [[nodiscard]] std::vector<Arena*> all() const;
  /// Calls `visit` with every arena, also of contexts that have ended.
  template <typename Visit>
  void for_each_ever(const Visit& visit) const {
    const Lock lock(mutex_);
    for (const auto* list : {&arenas_, &ended_}) {
      for (const auto& arena : *list) visit(*arena);
    }
  }
  /// Removes the arena of a context that has ended, and returns it; null if there is none.
  Arena* remove(CUcontext context) noexcept;

  [[nodiscard]] PrimaryContexts& primaries() noexcept { return primaries_; }
  /// Notes that work of one context may use memory of another from now on.
  void use_peers() noexcept { peers_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool has_peers() const noexcept { return peers_.load(std::memory_order_relaxed); }
  /// Lets work of the current context use pages of `owner`. For its own allocations the driver does
  /// this itself.
  void let_into_pages(CUcontext owner) noexcept;
  /// Lets work on `device` use all memory in stream order of `owner`, also of later contexts.
  void grant(int owner, int device) noexcept;

 private:
  [[nodiscard]] Arena* made_for(CUcontext context) const noexcept;
  [[nodiscard]] Arena* find_or_make(CUcontext context) noexcept;
  /// What a new arena has to be told.
  void begin(Arena& arena, bool first) noexcept;
  void let_in(Arena& arena, int device) noexcept;
  void say_active(const Account& account) const;

  const Driver& driver_;
  const Settings& settings_;
  Devices& devices_;
  Spilled& spilled_;
  PrimaryContexts primaries_;
  mutable Mutex mutex_{LockRank::kOrder};
  std::vector<std::unique_ptr<Arena>> arenas_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Arena>> ended_ WEIR_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> generation_{1};  ///< of `arenas_`, for what threads remember of it
  std::vector<std::pair<int, int>> grants_ WEIR_GUARDED_BY(mutex_);
  /// Contexts, and devices with access to their pages.
  std::vector<std::pair<CUcontext, int>> page_peers_ WEIR_GUARDED_BY(mutex_);
  std::atomic<bool> peers_{false};
};

}  // namespace weir::preload
