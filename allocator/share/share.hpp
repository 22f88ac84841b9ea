#pragma once

/// @file
/// A process's part in a budget that several processes share. docs/share.md follows one lease.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/share/share_file.hpp"
#include "allocator/share/share_policy.hpp"

namespace weir {

class NoCancel;

/// How a process takes part.
struct ShareOptions {
  ShareId id;      ///< its name and owner
  Bytes budget{};  ///< of all processes together; each names the same
  Bytes floor{};   ///< of this process; above zero
  /// How long the constructor asks others to return what they have above their floors. The process
  /// has no memory yet, so no other process can wait for it meanwhile.
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
  /// Called again and again, without a lock, while the constructor waits: a process that has parts
  /// in other shares returns there what others want, or two that attach crosswise would wait for
  /// each other. Must not throw.
  std::function<void()> meanwhile{};
};

/// A process's slot, from attaching to detaching. The leases' sum over all processes never exceeds
/// the budget, unless somebody forges a record: then until its process has repaired it and the
/// others have returned what that let them take. This process has at least its floor, whatever
/// others write.
///
/// Never waits for another process, except the constructor within its patience. Another process
/// that keeps the file's lock costs a few ShareFile::kLockPatience in each kLockPause, and a
/// kLongPatience in each kLongPause; then the lease stays as it is.
/// Thread-safe. In a forked child it does nothing, takes no lock, and every lease is zero. A thread
/// that is cancelled is so afterwards.
class Share {
 public:
  /// How hard `raise` tries to get the file's lock.
  enum class Effort : std::uint8_t {
    kBrief,  ///< the caller has something else to do
    kLong,   ///< the caller fails otherwise: a holder may have lost its CPU for some milliseconds
  };
  /// How many brief tries in a row may fail before a pause.
  static constexpr unsigned kBriefTries = 3;
  /// How long no lock is tried briefly then.
  static constexpr std::chrono::milliseconds kLockPause{100};
  /// How long a try with kLong waits for the lock at most.
  static constexpr std::chrono::milliseconds kLongPatience{50};
  /// How long there is no other such try after one failed.
  static constexpr std::chrono::milliseconds kLongPause{1000};
  /// How long nothing is raised after a move to another file: the others move there meanwhile.
  static constexpr std::chrono::milliseconds kMovePause{500};

  /// Attaches. Throws UsageError, one line, if the file is refused (ShareFile::open), its budget is
  /// another, the floors do not fit, or the others returned too little.
  explicit Share(const ShareOptions& options);
  /// Detaches: all that it had is the others'. The last one removes the file.
  ~Share();
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  [[nodiscard]] Bytes budget() const noexcept { return budget_; }  ///< of all processes
  [[nodiscard]] Bytes floor() const noexcept { return floor_; }    ///< of this process
  [[nodiscard]] Bytes lease() const noexcept;                      ///< that this process has now

  /// Tries to raise the lease to `needed`. Returns the lease then, which may be less. Others see
  /// what was refused, until a later call asks for no more or `forget_wish`.
  Bytes raise(Bytes needed, Effort effort = Effort::kBrief) noexcept;
  /// Lowers the lease to `kept`, but not below the floor. Returns the lease then.
  Bytes lower(Bytes kept) noexcept;
  /// Returns the lease to keep: less than the lease if others want more than they have, or more is
  /// leased than there is.
  [[nodiscard]] Bytes kept(const ShareUse& use) const;
  /// Returns whether `kept` may be less than the lease. Takes no lock of the file.
  [[nodiscard]] bool is_wanted() const;
  /// No longer wants what was refused.
  void forget_wish() noexcept;
  /// Writes this process's record again if it is not what it wrote, and moves to the file that has
  /// the share's name if the own one was removed, or the program closed it. Call it ten times a
  /// second or more often: others may raise their leases by what they cannot see.
  void repair() noexcept;

 private:
  class Locked;

  Share(const ShareOptions& options, const NoCancel& while_attaching);

  [[nodiscard]] std::vector<ShareSlot> others(bool& all_known) const WEIR_REQUIRES(mutex_);
  enum class Attached { kYes, kNotYet, kBusy, kFileEnded };
  void attach(const ShareOptions& options) WEIR_EXCLUDES(mutex_);
  [[nodiscard]] Attached try_attach(const ShareOptions& options) WEIR_REQUIRES(mutex_);
  /// Returns the slots of others while all of them are known. Throws UsageError.
  [[nodiscard]] std::vector<ShareSlot> known_others(const ShareOptions& options) const
      WEIR_REQUIRES(mutex_);
  /// Moves to the file that has the share's name now, with the lease that it has. At most once in
  /// kLockPause. Returns whether the own file is open and has the name.
  bool follow_name() noexcept WEIR_REQUIRES(mutex_);
  [[nodiscard]] bool is_in_place() const noexcept WEIR_REQUIRES(mutex_);
  /// Throws Error.
  void move_to_named() WEIR_REQUIRES(mutex_);
  /// Returns how long to try for the lock; nothing after too many failures.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> patience_for(
      Effort effort, std::chrono::steady_clock::time_point now) const noexcept
      WEIR_REQUIRES(mutex_);
  void note_lock_try(bool got_it, std::chrono::nanoseconds patience) noexcept WEIR_REQUIRES(mutex_);
  bool write() noexcept WEIR_REQUIRES(mutex_);
  /// Call before any lock: a thread of the parent may have had it at the fork.
  [[nodiscard]] bool is_child() const noexcept;

  const pid_t pid_;
  const std::uint64_t forks_ = ShareFile::forks();
  const ShareId id_;
  const Bytes budget_;
  const Bytes floor_;
  mutable Mutex mutex_{LockRank::kLeaf};
  mutable ShareFile file_ WEIR_GUARDED_BY(mutex_);
  std::size_t index_ WEIR_GUARDED_BY(mutex_) = 0;
  ShareSlot own_ WEIR_GUARDED_BY(mutex_);  ///< the file's copy of it is never trusted
  /// After somebody kept the file's lock: when to try again, briefly or for long.
  std::chrono::steady_clock::time_point next_brief_try_ WEIR_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point next_long_try_ WEIR_GUARDED_BY(mutex_);
  unsigned failed_tries_ WEIR_GUARDED_BY(mutex_) = 0;  ///< in a row
  /// After a move to another file: when to raise again.
  std::chrono::steady_clock::time_point next_raise_ WEIR_GUARDED_BY(mutex_);
  /// After the file was removed or closed: when to look for another again.
  std::chrono::steady_clock::time_point next_move_ WEIR_GUARDED_BY(mutex_);
  bool move_refused_ WEIR_GUARDED_BY(mutex_) = false;  ///< and that was said
};

/// What is in a share, for people.
struct ShareReport {
  ShareId id;                            ///< its name and owner
  Bytes budget{};                        ///< of all processes together
  std::vector<ShareSlots::Used> used{};  ///< the slots of attached processes
  std::string fault{};                   ///< why it cannot be read; empty otherwise
};
/// Looks into a share without taking part.
[[nodiscard]] ShareReport look_into(const ShareId& id);

}  // namespace weir
