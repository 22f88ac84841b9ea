#pragma once

// What Weir knows in this process: its settings, the accounts of devices, the arenas of contexts.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/preload/context/account.hpp"
#include "tools/preload/context/arena.hpp"
#include "tools/preload/context/give_back_gate.hpp"
#include "tools/preload/context/loads.hpp"
#include "tools/preload/context/primary_contexts.hpp"
#include "tools/preload/context/spill.hpp"
#include "tools/preload/report/settings.hpp"
#include "tools/timeline/live/budget_request.hpp"

namespace weir::preload {

/// A stream, and the arena of its context; none where it has no context or memory of the host is
/// short.
struct Located {
  Arena* arena = nullptr;
  StreamId stream{};
};

/// An allocation as the program asked for it.
struct Allocation {
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
};

/// Made by the first call that needs it, never destroyed. Thread-safe.
class Process final : public Neighbours {
 public:
  /// Null: the call is to be passed to the driver. In a child after fork, inside a call of our own,
  /// or where there is no driver. Ends the program, with one line and exit code 2, where a setting
  /// is bad: nothing was done yet that could be lost.
  [[nodiscard]] static Process* get() noexcept;
  /// The same, but null where nothing was set up yet.
  [[nodiscard]] static Process* get_if_any() noexcept;
  /// Whether this is a child after fork of a process that was set up.
  [[nodiscard]] static bool is_forked_child() noexcept;

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] PassedTable& passed() noexcept { return passed_; }
  [[nodiscard]] Loads& loads() noexcept { return loads_; }
  [[nodiscard]] const Spilled& spilled() const noexcept { return spilled_; }

  /// The arena of the context that is current, made with it; null where none is.
  [[nodiscard]] Arena* current() noexcept;
  /// The arena of the context that `stream` is of, which need not be current; the default streams
  /// are the current one's.
  [[nodiscard]] Located locate(CUstream stream, bool per_thread) noexcept;
  /// The same of the primary context of `device`, without making it.
  [[nodiscard]] Arena* primary(int device) noexcept;
  /// Every arena whose context is there.
  [[nodiscard]] std::vector<Arena*> arenas() const;
  /// The account of a device; null where the driver does not know it.
  [[nodiscard]] Account* account(int device) noexcept;
  /// The account of the current context's device; null where none is current.
  [[nodiscard]] Account* current_account() noexcept;
  [[nodiscard]] CUcontext current_context() const noexcept;
  /// Which device has this pool by default; -1 where none has.
  [[nodiscard]] int default_pool_of(CUmemoryPool pool) noexcept;
  /// Whether memory in stream order on `device` comes from a pool of the program's own, and from
  /// when on.
  [[nodiscard]] bool has_own_pool(int device) const noexcept {
    return (own_pools_.load(std::memory_order_relaxed) >> (static_cast<unsigned>(device) % 64U)) &
           1U;
  }
  void set_own_pool(int device, bool own) noexcept;

  /// Memory of the current context; the code and, once, the report are as the program is to get
  /// them. CUDA_ERROR_NOT_INITIALIZED stands for: pass it to the driver.
  [[nodiscard]] CUresult allocate(Arena& arena, CUdeviceptr& pointer, std::size_t bytes,
                                  StreamId stream) noexcept;
  /// Frees it in the arena that it is from, in the order of `here`, or, without a stream there,
  /// behind everything. Nothing where it is from none.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr pointer, const Located& here) noexcept;
  /// Whether `address` lies in anything that Weir serves, handed out or not.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept;
  /// The allocation that `address` lies in, of those that the pools serve; one of no bytes where
  /// nobody has the address. Nothing where it is for the driver to say.
  [[nodiscard]] std::optional<Allocation> allocation_around(CUdeviceptr address) const noexcept;
  /// Work of one context may use memory of another from now on.
  void use_peers() noexcept { peers_.store(true, std::memory_order_relaxed); }
  /// Work of the current context may use memory of `owner`: the driver sees to that for what it
  /// allocates, and not for pages.
  void let_into_pages(CUcontext owner) noexcept;
  /// Work on `device` may use all memory in stream order of `owner`, of contexts to come as well.
  void grant(int owner, int device) noexcept;
  /// Takes `bytes` of the current device's budget for memory that the driver is about to serve,
  /// from the pools' caches where they have it. A request of its own: this and what the caller does
  /// next for it wait as long as one call may.
  [[nodiscard]] bool make_room(Account& account, Bytes bytes) noexcept;
  /// Gives what the pools of a device keep and do not need back to the driver; how much. Waits
  /// while a context ends, as long as the thread's request may.
  Bytes trim(const Account& account, Bytes need) noexcept;
  /// Another budget for a device, from kLeastBudget to its total. Cached memory above it goes back
  /// to the driver at once, what is handed out as it is freed. `by` says who asked, for the log.
  [[nodiscard]] timeline::BudgetAnswer set_budget(Account& account, Bytes budget,
                                                  std::string_view by) noexcept;
  /// Gives back what has come free above a budget that was lowered.
  void keep_budget(Account& account) noexcept {
    if (account.gives_back()) give_back(account, false);
  }
  /// The accounts of devices that have, or had, an arena.
  [[nodiscard]] std::vector<Account*> accounts_in_use() const;
  [[nodiscard]] PrimaryContexts& primary_contexts() noexcept { return primary_contexts_; }
  /// Contexts end apart from what give_back does in them.
  [[nodiscard]] GiveBackGate& give_back_gate() noexcept { return give_back_gate_; }
  /// What the devices in use show of themselves.
  void add_figures(LiveFigures& figures) const;
  // Neighbours. Arenas of which a stream is captured are left out: nothing of theirs can go back,
  // nor be waited for.
  Bytes reclaim(const Account& account, Bytes need, bool if_enough) noexcept override;
  [[nodiscard]] std::optional<Release> oldest_release(
      const Account& account) const noexcept override;
  [[nodiscard]] Bytes not_in_use(const Account& account) const noexcept override;
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept override;
  /// Learns what graphs have reserved, as the driver says: nothing else tells.
  void refresh_graphs(Account& account) noexcept;
  /// The driver served `bytes` of a device's budget, taken by make_room, under `handle`, to end
  /// with `context`.
  void count(Account& account, Kind kind, Bytes bytes, std::uint64_t handle,
             CUcontext context) noexcept;
  /// Captures may have ended: does what waited for that, in every context that has no captured
  /// stream left.
  void note_end_of_captures() noexcept;
  /// The context is gone.
  void forget(CUcontext context) noexcept;
  void report(const Account& account, const std::string& text) noexcept;

  [[nodiscard]] Summary summary() const;

 private:
  Process(const Driver& driver, Settings settings);
  static void set_up() noexcept;
  /// The same by who has the turn to give back.
  Bytes trim_in_turn(const Account& account, Bytes need) noexcept;
  /// What was not given back since a capture was under way.
  void give_back_held();
  /// Waits, as long as the thread's request may, for all that the device has to do.
  void drain(const Account& account) noexcept;
  /// What make_room does where the budget has no room by itself.
  [[nodiscard]] bool await_room(Account& account, Bytes bytes) noexcept;
  /// `waits`: for another thread that gives back now, instead of leaving it to that one.
  void give_back(Account& account, bool waits) noexcept;
  /// A new arena's budget is the one in force, though it was set while the arena was made.
  void follow_budget(Arena& arena);
  [[nodiscard]] Arena* made_for(CUcontext context) const noexcept;
  [[nodiscard]] std::optional<CUresult> free_elsewhere(CUdeviceptr pointer, const Located& here);
  /// Frees what is `owner`'s behind its streams and `here`, or behind all streams of all contexts.
  /// Where one of them is captured that waits for the end of the capture.
  [[nodiscard]] std::optional<CUresult> free_behind_peers(Arena& owner, CUdeviceptr pointer,
                                                          const Located& here);
  /// What was parked is behind all streams of all contexts from now on, where those can be asked.
  void finish_parked() noexcept;
  [[nodiscard]] std::optional<CUresult> free_spilled(CUdeviceptr pointer, const Located& here);
  /// The next fence on everything of `owner` covers what runs elsewhere, too. CaptureUnderWay where
  /// a context is captured, or one ends for longer than `most`: nobody can be asked then.
  void cover_peers(Arena& owner, const Located& here, std::chrono::nanoseconds most);
  /// The same for all other contexts; false where one ends.
  [[nodiscard]] bool cover_all_peers(Arena& owner, std::chrono::nanoseconds most);
  void let_in(Arena& arena, int device) noexcept;
  [[nodiscard]] Arena* find_or_make(CUcontext context) noexcept;
  /// A line for each pool of the device, where there are several; for the report.
  [[nodiscard]] std::string pools_text(const Account& account) const;
  void say_active(const Account& account) const;
  /// The summary, if one is wanted and can be had: the program's end waits for it, but not for
  /// ever.
  void at_exit() const noexcept;
  void write_summary() const noexcept;

  const Driver& driver_;
  const Settings settings_;
  PassedTable passed_;
  Loads loads_;
  PrimaryContexts primary_contexts_;
  GiveBackGate give_back_gate_;
  Spilled spilled_;
  Mutex budgets_mutex_{LockRank::kSources};  ///< an account's budget and its arenas' change as one
  mutable Mutex mutex_{LockRank::kOrder};
  std::vector<std::unique_ptr<Arena>> arenas_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Arena>> gone_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Account>> accounts_ WEIR_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> generation_{1};  ///< of arenas_: what threads remember of it
  std::vector<std::pair<int, int>> grants_ WEIR_GUARDED_BY(mutex_);
  std::atomic<bool> parked_{false};  ///< something may be parked (Fences::parked)
  /// Contexts, and devices that have access to their pages.
  std::vector<std::pair<CUcontext, int>> page_peers_ WEIR_GUARDED_BY(mutex_);
  std::atomic<bool> peers_{false};
  std::atomic<std::uint64_t> own_pools_{0};  ///< a bit for each device
  std::atomic<bool> reported_{false};
};

}  // namespace weir::preload
