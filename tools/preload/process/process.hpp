#pragma once

// What Weir knows in this process: settings, accounts of devices, arenas of contexts.

#include <atomic>
#include <condition_variable>
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
#include "tools/preload/process/account_share.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/timeline/live/block.hpp"

namespace weir::timeline {
class Recorder;
}  // namespace weir::timeline

namespace weir::preload {

/// A stream and its context's arena; none if it has no context or host memory is short.
struct Located {
  Arena* arena = nullptr;
  StreamId stream{};
};

/// An allocation as the program asked for it.
struct Allocation {
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
};

/// What a program is told of a device's memory.
struct BudgetView {
  Bytes total;  ///< the budget, or the device's total if smaller
  Bytes free;   ///< at most what the device could give
  Bytes held;   ///< by this program: without cached memory and frees that await the device
};

/// Created by the first call that needs it, never destroyed. Thread-safe.
class Process final : public Neighbours {
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
  [[nodiscard]] PassedTable& passed() noexcept { return passed_; }
  [[nodiscard]] Loads& loads() noexcept { return loads_; }
  [[nodiscard]] const Spilled& spilled() const noexcept { return spilled_; }

  /// Returns the current context's arena, and creates it if needed; null without a current context.
  [[nodiscard]] Arena* current() noexcept;
  /// Returns the arena of the context of `stream`, which need not be current. A default stream is
  /// of the current context.
  [[nodiscard]] Located locate(CUstream stream, bool per_thread) noexcept;
  /// The same for the primary context of `device`, without creating the arena.
  [[nodiscard]] Arena* primary(int device) noexcept;
  /// Returns every arena whose context exists.
  [[nodiscard]] std::vector<Arena*> arenas() const;
  /// Returns a device's account; null if the driver does not know the device.
  [[nodiscard]] Account* account(int device) noexcept;
  /// The same for callers that ask for no memory: null if the device would have to attach to a
  /// share first, which takes a floor there.
  [[nodiscard]] Account* account_without_attaching(int device) noexcept;
  /// Returns the budget that the program sees of a device with `total` bytes. Attaches to no share.
  [[nodiscard]] Bytes visible_budget(int device, Bytes total) noexcept;
  /// Returns the view for a device with `free` of `total`. Asks the pools of all its contexts, and
  /// throws what they throw.
  [[nodiscard]] BudgetView budget_view(const Account& account, Bytes free, Bytes total) const;
  /// Returns the account of the current context's device; null without a current context.
  [[nodiscard]] Account* current_account() noexcept;
  [[nodiscard]] CUcontext current_context() const noexcept;
  /// Returns the device whose default pool this is; -1 if none.
  [[nodiscard]] int default_pool_of(CUmemoryPool pool) noexcept;
  /// Whether memory in stream order on `device` comes from the program's own pool.
  [[nodiscard]] bool has_own_pool(int device) const noexcept {
    return (own_pools_.load(std::memory_order_relaxed) >> (static_cast<unsigned>(device) % 64U)) &
           1U;
  }
  void set_own_pool(int device, bool own) noexcept;

  /// Allocates in the current context. Returns the code and, once, the report for the program.
  /// CUDA_ERROR_NOT_INITIALIZED means: pass the call to the driver.
  [[nodiscard]] CUresult allocate(Arena& arena, CUdeviceptr& pointer, std::size_t bytes,
                                  StreamId stream) noexcept;
  /// Frees in the arena that owns the memory, in the order of `here`, or after all streams if
  /// `here` has none. Returns nothing if no arena owns it.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr pointer, const Located& here) noexcept;
  /// Whether `address` lies in memory that Weir serves, allocated or not.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept;
  /// Returns the pool allocation around `address`; zero bytes if nothing is allocated there.
  /// Returns nothing if the driver must answer.
  [[nodiscard]] std::optional<Allocation> allocation_around(CUdeviceptr address) const noexcept;
  /// Notes that work of one context may use memory of another from now on.
  void use_peers() noexcept { peers_.store(true, std::memory_order_relaxed); }
  /// Lets work of the current context use pages of `owner`. For its own allocations the driver does
  /// this itself.
  void let_into_pages(CUcontext owner) noexcept;
  /// Lets work on `device` use all memory in stream order of `owner`, also of later contexts.
  void grant(int owner, int device) noexcept;
  /// Takes `bytes` of the device's budget for memory that the driver is about to serve, if needed
  /// from the pools' caches. Begins a request: this and what the caller does next for it together
  /// wait for at most the time allowed for one call.
  [[nodiscard]] bool make_room(Account& account, Bytes bytes) noexcept;
  /// Returns unneeded memory that a device's pools cache to the driver, and returns how much. While
  /// a context is ending, waits as long as the thread's request may.
  Bytes trim(const Account& account, Bytes need) noexcept;
  /// Sets a device's budget, from kLeastBudget to its total. Cached memory above it goes back to
  /// the driver at once, allocated memory as it is freed. `by` names the requester in the log.
  [[nodiscard]] timeline::BudgetAnswer set_budget(Account& account, Bytes budget,
                                                  std::string_view by) noexcept;
  /// Limits a device's budget to a share of its total, 0 to 1, besides what set_budget sets; below
  /// kLeastBudget, to that. The lower one is the budget.
  [[nodiscard]] timeline::BudgetAnswer set_fraction(Account& account, double fraction,
                                                    std::string_view by) noexcept;
  /// Gives back memory freed above a lowered budget, and what other processes want of a share.
  void keep_budget(Account& account) noexcept {
    if (account.gives_back()) give_back(account, false);
    keep_share(account);
  }
  /// Gives back what other processes want of the device's share, if it has one. Often called, also
  /// where nothing is freed: with WEIR_PUBLISH=0 no thread looks.
  void keep_share(const Account& account) noexcept;
  /// The same for all devices in use.
  void keep_budgets() noexcept;
  /// Gives back cached memory above the budget, and what comes free until it is within.
  void give_back_to_share(Account& account) noexcept {
    account.give_back_what_comes_free(true);
    give_back(account, false);
  }
  /// An account's budget and those of its arenas change together. Call without a lock.
  [[nodiscard]] Mutex& budgets_mutex() noexcept { return budgets_mutex_; }
  /// Returns the accounts of devices that have or had an arena.
  [[nodiscard]] std::vector<Account*> accounts_in_use() const;
  [[nodiscard]] PrimaryContexts& primary_contexts() noexcept { return primary_contexts_; }
  /// Separates the ends of contexts from give_back's work in them.
  [[nodiscard]] GiveBackGate& give_back_gate() noexcept { return give_back_gate_; }
  /// Adds the figures of the devices in use.
  void add_figures(LiveFigures& figures) const;
  // Neighbours. Skips arenas with a captured stream: nothing of theirs can go back or be waited
  // for.
  Bytes reclaim(const Account& account, Bytes need, bool if_enough) noexcept override;
  [[nodiscard]] std::optional<Release> oldest_release(
      const Account& account) const noexcept override;
  [[nodiscard]] Bytes not_in_use(const Account& account) const noexcept override;
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept override;
  /// Learns what graphs have reserved, as the driver says: nothing else tells.
  void refresh_graphs(Account& account) noexcept;
  /// Counts `bytes` of a device's budget, taken by make_room and served by the driver under
  /// `handle`. They end with `context`.
  void count(Account& account, Kind kind, Bytes bytes, std::uint64_t handle,
             CUcontext context) noexcept;
  /// Call when captures may have ended: does the postponed work in every context without a captured
  /// stream.
  void note_end_of_captures() noexcept;
  /// Drops a context that has ended.
  void forget(CUcontext context) noexcept;
  /// Says that a request failed, and why.
  void tell(const Account& account, Bytes bytes, const std::string& why) noexcept;
  void report(const Account& account, const std::string& text) noexcept;

  [[nodiscard]] Summary summary() const;

 private:
  Process(const Driver& driver, Settings settings);
  static void set_up() noexcept;
  /// The same, for the caller with the turn to give back.
  Bytes trim_in_turn(const Account& account, Bytes need) noexcept;
  /// Gives back what captures delayed.
  void give_back_held();
  /// Waits for all work of the device, as long as the thread's request may.
  void drain(const Account& account) noexcept;
  /// Calls `change`, which changes the account's budget, and makes pools and memory follow.
  template <typename Change>
  [[nodiscard]] timeline::BudgetAnswer change_budget(Account& account, std::string_view by,
                                                     const Change& change) noexcept;
  /// Throws UsageError.
  [[nodiscard]] Bytes budget_of(Bytes total) const;
  [[nodiscard]] std::unique_ptr<Account> make_account(int device, Bytes total)
      WEIR_EXCLUDES(mutex_);
  /// Attaches the device to its share. Throws UsageError.
  [[nodiscard]] std::unique_ptr<Account> make_shared_account(int device, Bytes total, Bytes budget)
      WEIR_EXCLUDES(mutex_);
  /// The part of make_room for a budget without room.
  [[nodiscard]] bool await_room(Account& account, Bytes bytes) noexcept;
  /// `waits`: wait for another thread that gives back now, instead of leaving it to that thread.
  void give_back(Account& account, bool waits) noexcept;
  /// Gives a new arena the current budget, even if that was set during its creation.
  void follow_budget(Arena& arena);
  [[nodiscard]] Arena* made_for(CUcontext context) const noexcept;
  [[nodiscard]] std::optional<CUresult> free_elsewhere(CUdeviceptr pointer, const Located& here);
  /// Frees memory of `owner` after its streams and `here`, or after all streams of all contexts. If
  /// one of them is captured, waits for the end of the capture.
  [[nodiscard]] std::optional<CUresult> free_behind_peers(Arena& owner, CUdeviceptr pointer,
                                                          const Located& here);
  /// Orders parked memory after all streams of all contexts, if those can be asked.
  void finish_parked() noexcept;
  [[nodiscard]] std::optional<CUresult> free_spilled(CUdeviceptr pointer, const Located& here);
  /// Makes the next fence on everything of `owner` cover work in other contexts. Throws
  /// CaptureUnderWay if a context is captured, or one is ending for longer than `most`: then they
  /// cannot be asked.
  void cover_peers(Arena& owner, const Located& here, std::chrono::nanoseconds most);
  /// The same for all other contexts; false if one is ending.
  [[nodiscard]] bool cover_all_peers(Arena& owner, std::chrono::nanoseconds most);
  void let_in(Arena& arena, int device) noexcept;
  [[nodiscard]] Arena* find_or_make(CUcontext context) noexcept;
  /// Returns a line for each pool of the device if there are several, for the report.
  [[nodiscard]] std::string pools_text(const Account& account) const;
  void say_active(const Account& account) const;
  /// Writes the summary if wanted and possible. The program's end waits for it for a bounded time.
  void at_exit() const noexcept;
  void write_summary() const noexcept;

  const Driver& driver_;
  const Settings settings_;
  PassedTable passed_;
  Loads loads_;
  PrimaryContexts primary_contexts_;
  GiveBackGate give_back_gate_;
  Spilled spilled_;
  Mutex budgets_mutex_{LockRank::kSources};  ///< an account's budget and those of its arenas change
                                             ///< together
  mutable Mutex mutex_{LockRank::kOrder};
  std::vector<std::unique_ptr<Arena>> arenas_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Arena>> gone_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Account>> accounts_ WEIR_GUARDED_BY(mutex_);
  std::vector<int> becoming_known_
      WEIR_GUARDED_BY(mutex_);  ///< devices whose account is being made
  std::condition_variable_any account_made_;
  std::vector<std::unique_ptr<AccountShare>> shares_ WEIR_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> generation_{1};  ///< version of arenas_, for what threads remember of
                                              ///< it
  std::vector<std::pair<int, int>> grants_ WEIR_GUARDED_BY(mutex_);
  std::atomic<bool> parked_{false};  ///< something may be parked (Fences::parked)
  /// Contexts, and devices with access to their pages.
  std::vector<std::pair<CUcontext, int>> page_peers_ WEIR_GUARDED_BY(mutex_);
  std::atomic<bool> peers_{false};
  std::atomic<std::uint64_t> own_pools_{0};  ///< one bit per device
  std::atomic<bool> reported_{false};
  std::atomic<bool> told_beyond_{false};
};

/// Returns the recording, begun now or earlier; null if no file is named.
timeline::Recorder* begin_process_recording(const timeline::TimelineSettings& settings);
/// Begins the timeline that WEIR_TIMELINE asks for; it ends with the program. Does nothing if none
/// is asked for or the program already began one. Throws UsageError.
void begin_timeline(const timeline::TimelineSettings& settings);
/// Shows the process's devices in live views from now on. Call once.
void show_devices(const Process& process);
/// Shows the program to `weir top` and accepts `weir set`, unless the settings forbid it.
void begin_publishing(const Settings& settings) noexcept;
/// Publishes a device in use. For internal callers.
void publish_device(const Settings& settings, const std::string& name) noexcept;

}  // namespace weir::preload
