#include "allocator/share/share.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/time_after.hpp"

namespace weir {
namespace {

constexpr std::chrono::milliseconds kAskAgain{2};

[[noreturn]] void refuse_share(const ShareId& id, const std::string& why) {
  throw UsageError("the share '" + id.name + "' is refused: " + why);
}

}  // namespace

/// Holds the file's lock for a scope, if it could be had.
class Share::Locked {
 public:
  explicit Locked(ShareFile& file,
                  std::chrono::nanoseconds patience = ShareFile::kLockPatience) noexcept
      : file_(file), held_(file.lock(patience)) {}
  ~Locked() {
    if (held_) file_.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  ShareFile& file_;
  const bool held_;
};

Share::Share(const ShareOptions& options) : Share(options, NoCancel()) {}

Share::Share(const ShareOptions& options, const NoCancel& /*while_attaching*/)
    : pid_(getpid()),
      id_(options.id),
      budget_(options.budget),
      floor_(options.floor),
      file_(ShareFile::open(options.id, options.budget)) {
  if (floor_.count == 0 || floor_ > budget_ || budget_ > kMostShared) {
    refuse_share(options.id, "its floor of " + format_bytes(floor_) +
                                 " is not within its budget of " + format_bytes(budget_));
  }
  attach(options);
}

Share::~Share() {
  if (is_child()) return;
  const NoCancel no_cancel;
  const Lock lock(mutex_);
  const Locked locked(file_);
  file_.leave_slot(index_);
  if (!locked) return;
  const ShareSlots slots = file_.read();
  if (slots.is_complete && slots.used.empty()) file_.remove_name();
}

bool Share::is_child() const noexcept {
  return ShareFile::forks() != forks_ || getpid() != pid_;  // clone() without the fork's handlers
}

/// Returns the slots of others. `all_known` is false if one of them, or the header, was tampered
/// with, or the kernel does not say which there are: then nobody knows what is left.
std::vector<ShareSlot> Share::others(bool& all_known) const {
  const ShareSlots slots = file_.read();
  all_known = slots.is_complete && slots.budget == budget_;
  std::vector<ShareSlot> others;
  for (const ShareSlots::Used& used : slots.used) {
    if (used.slot) {
      others.push_back(*used.slot);
    } else {
      all_known = false;
    }
  }
  return others;
}

std::vector<ShareSlot> Share::known_others(const ShareOptions& options) const {
  constexpr int kLooks = 8;  // a process may be writing its slot just now
  for (int i = 0; i < kLooks; ++i) {
    bool all_known = false;
    std::vector<ShareSlot> known = others(all_known);
    if (all_known) return known;
    std::this_thread::sleep_for(kAskAgain / kLooks);
  }
  refuse_share(options.id, "a slot was changed by something other than Weir");
}

// Ends: at the deadline. The slot shows its floor from the first round on, so others return what
// they have above theirs, and nobody can take what comes back.
void Share::attach(const ShareOptions& options) {
  constexpr std::chrono::seconds kMostBusy{1};
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    Attached now = Attached::kBusy;
    {
      const Lock lock(mutex_);
      now = try_attach(options);
      if (now == Attached::kFileEnded) file_ = ShareFile::open(options.id, budget_);
    }
    if (now == Attached::kYes) return;
    const auto waited = std::chrono::steady_clock::now() - begun;
    const auto most =
        now == Attached::kNotYet ? options.patience : time_after(options.patience, kMostBusy);
    if (waited >= most && now == Attached::kNotYet) {
      refuse_share(options.id, "others still use what they lease above their floors, and " +
                                   format_bytes(floor_) + " of " + format_bytes(budget_) +
                                   " are not left: try again");
    }
    if (waited >= most) refuse_share(options.id, "another process keeps its lock");
    if (now == Attached::kFileEnded) continue;
    if (options.meanwhile) options.meanwhile();
    std::this_thread::sleep_for(kAskAgain);
  }
}

Share::Attached Share::try_attach(const ShareOptions& options) {
  const Locked locked(file_);
  if (!locked) return Attached::kBusy;
  const bool has_slot = own_.floor.count != 0;
  if (!has_slot && !file_.is_named()) return Attached::kFileEnded;  // since it was opened
  const ShareSlots slots = file_.read();
  if (!slots.is_complete) refuse_share(options.id, "the kernel does not say who uses it");
  if (slots.budget != budget_) {
    if (slots.budget.count == 0) {
      refuse_share(options.id, "its header was changed by something other than Weir");
    }
    if (!slots.used.empty()) {
      refuse_share(options.id, "its budget is " + format_bytes(slots.budget) +
                                   ", and this process names " + format_bytes(budget_));
    }
    file_.write_header(budget_);
  }
  const std::vector<ShareSlot> now = known_others(options);
  if (!floors_fit(now, budget_, floor_)) {
    Bytes floors;
    for (const ShareSlot& slot : now) floors += slot.floor;
    refuse_share(options.id, "a floor of " + format_bytes(floor_) + " does not fit beside " +
                                 format_bytes(floors) + " of other processes in a budget of " +
                                 format_bytes(budget_));
  }
  if (!has_slot) {
    const auto index = file_.take_slot();
    if (!index) {
      refuse_share(options.id, "all its " + std::to_string(kShareSlots) + " slots are taken");
    }
    index_ = *index;
    own_ = {.floor = floor_, .lease = {}, .wanted = floor_};
  }
  if (left_by(now, budget_) >= floor_) own_.lease = floor_;
  if (!write()) refuse_share(options.id, "it cannot be written");
  return own_.lease >= floor_ ? Attached::kYes : Attached::kNotYet;
}

bool Share::write() noexcept {
  return file_.write(index_, record_of(own_, static_cast<std::uint64_t>(pid_)));
}

// Others that came after the removal are in a file of the same name, and see nobody. So this
// process shows them what it has, even if the sum is too high by then: they return what they can.
bool Share::follow_name() noexcept {
  if (is_in_place()) return true;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_move_) return false;
  next_move_ = now + kLockPause;
  try {
    move_to_named();
  } catch (const std::exception& error) {
    if (!move_refused_) {
      log(LogLevel::kWarn,
          "the file of the share '" + id_.name +
              "' was removed or closed while it was used, and this process gets no "
              "more of it: " +
              error.what());
    }
    move_refused_ = true;
  }
  return is_in_place();
}

bool Share::is_in_place() const noexcept { return file_.is_open() && file_.is_named(); }

void Share::move_to_named() {
  const bool was_closed = !file_.is_open();
  file_.forget_if_closed();  // its number may be the next one's
  ShareFile next = ShareFile::open(id_, budget_);
  {
    const Locked locked(next);
    if (!locked || !next.is_named()) return;
    const ShareSlots slots = next.read();
    if (slots.budget != budget_) {
      if (!slots.is_complete || !slots.used.empty())
        refuse_share(id_, "its new file has another budget");
      next.write_header(budget_);
    }
    const auto index = next.take_slot();
    if (!index || !next.write(*index, record_of(own_, static_cast<std::uint64_t>(pid_)))) {
      refuse_share(id_, "its new file has no slot for this process");
    }
    index_ = *index;
  }
  file_ = std::move(next);  // the former slot was its own until now
  next_raise_ = std::chrono::steady_clock::now() + kMovePause;
  const std::string of_share = "the file of the share '" + id_.name + "'";
  log(LogLevel::kWarn,
      was_closed ? "the program closed " + of_share + "; it was opened again"
                 : of_share +
                       " was removed while it was used; this process has moved to a new one "
                       "(systemd-logind removes such files when a user logs out, unless "
                       "RemoveIPC=no)");
}

Bytes Share::lease() const noexcept {
  if (is_child()) return {};
  const Lock lock(mutex_);
  return own_.lease;
}

std::optional<std::chrono::nanoseconds> Share::patience_for(
    Effort effort, std::chrono::steady_clock::time_point now) const noexcept {
  if (effort == Effort::kLong && now >= next_long_try_) return kLongPatience;
  if (now >= next_brief_try_) return ShareFile::kLockPatience;
  return std::nullopt;
}

void Share::note_lock_try(bool got_it, std::chrono::nanoseconds patience) noexcept {
  failed_tries_ = got_it ? 0 : failed_tries_ + 1;
  if (got_it) return;
  const auto now = std::chrono::steady_clock::now();
  if (failed_tries_ >= kBriefTries) next_brief_try_ = now + kLockPause;
  if (patience == kLongPatience) next_long_try_ = now + kLongPause;
}

Bytes Share::raise(Bytes needed, Effort effort) noexcept {
  if (is_child()) return {};
  const NoCancel no_cancel;
  const Lock lock(mutex_);
  needed = std::min(needed, budget_);
  if (needed <= own_.lease) return own_.lease;
  const auto now = std::chrono::steady_clock::now();
  if (!follow_name() || now < next_raise_) return own_.lease;
  const auto patience = patience_for(effort, now);
  if (!patience) return own_.lease;
  const Locked locked(file_, *patience);
  note_lock_try(static_cast<bool>(locked), *patience);
  if (!locked) return own_.lease;
  try {
    const ShareSlot before = own_;
    bool all_known = false;
    const std::vector<ShareSlot> beside = others(all_known);
    all_known = all_known && file_.is_named();  // else others are in a file that it does not see
    if (all_known) own_.lease = raised_lease(beside, budget_, own_, needed);
    own_.wanted = needed;
    // Nothing is used that others could not see.
    if (!write()) own_ = before;
  } catch (const std::bad_alloc&) {
    return own_.lease;
  }
  return own_.lease;
}

Bytes Share::lower(Bytes kept) noexcept {
  if (is_child()) return {};
  const NoCancel no_cancel;
  const Lock lock(mutex_);
  kept = std::max(kept, floor_);
  if (kept >= own_.lease) return own_.lease;
  const Locked locked(file_);  // or not: less is always allowed
  own_.lease = kept;
  own_.wanted = kept;
  (void)write();
  return own_.lease;
}

Bytes Share::kept(const ShareUse& use) const {
  if (is_child()) return {};
  const NoCancel no_cancel;
  const Lock lock(mutex_);
  bool all_known = false;
  const std::vector<ShareSlot> now = others(all_known);
  return all_known ? kept_lease(now, budget_, own_, use) : own_.lease;
}

bool Share::is_wanted() const {
  if (is_child()) return false;
  const NoCancel no_cancel;
  const Lock lock(mutex_);
  bool all_known = false;
  const std::vector<ShareSlot> beside = others(all_known);
  return all_known ? has_to_return(beside, budget_, own_) : weir::is_wanted(beside);
}

void Share::forget_wish() noexcept {
  if (is_child()) return;
  const NoCancel no_cancel;
  const Lock lock(mutex_);
  if (own_.wanted <= own_.lease) return;
  const Locked locked(file_);
  own_.wanted = own_.lease;
  (void)write();
}

void Share::repair() noexcept {
  if (is_child()) return;
  const NoCancel no_cancel;
  const Lock lock(mutex_);
  (void)follow_name();
  const auto there = file_.record(index_);
  const ShareRecord own = record_of(own_, static_cast<std::uint64_t>(pid_));
  if (there && std::memcmp(&*there, &own, sizeof own) == 0) return;
  const Locked locked(file_);
  (void)write();
}

ShareReport look_into(const ShareId& id) {
  const NoCancel no_cancel;
  ShareReport report{.id = id};
  try {
    const ShareFile file = ShareFile::open_to_look(id);
    const ShareSlots slots = file.read();
    report.budget = slots.budget;
    report.used = slots.used;
    if (!slots.is_complete) report.fault = "the kernel does not say who uses it";
  } catch (const Error& error) {
    report.fault = error.what();
  }
  return report;
}

}  // namespace weir
