#include "allocator/share/shared_budget.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"

namespace weir {
namespace {

constexpr std::chrono::milliseconds kLookAgain{5};
/// With nothing to return it only looks whether its record was forged.
constexpr std::chrono::milliseconds kLookAtFloor{100};
/// A second without a batch: it returns what it does not hold.
constexpr unsigned kIdleLooks = 200;
/// A tenth of a second after a refusal it wants no more, unless it asks again.
constexpr unsigned kWishLooks = 20;

/// The program's signals are for its own threads.
class NoSignals {
 public:
  NoSignals() noexcept {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

class SharedBudget::Limit final : public BudgetLimit {
 public:
  Limit(const Share& share, Pool& pool, unsigned& idle_looks, bool& is_floor_low) noexcept
      : share_(share), pool_(pool), idle_looks_(idle_looks), is_floor_low_(is_floor_low) {}
  void set_for(const BudgetUse& use) noexcept override {
    idle_looks_ = use.idle ? idle_looks_ + 1 : 0;
    try {
      if (use.committed > share_.floor() && !std::exchange(is_floor_low_, true)) {
        log(LogLevel::kWarn, "live memory and an open batch need " + format_bytes(use.committed) +
                                 ", and the floor in the shared budget is " +
                                 format_bytes(share_.floor()) +
                                 ": batches may run out of memory while others have the rest "
                                 "(WEIR_SHARE_FLOOR)");
      }
      Bytes keep = share_.kept({.held = use.held, .committed = use.committed});
      if (idle_looks_ >= kIdleLooks) keep = std::max(share_.floor(), use.held);
      pool_.lower_budget(keep);
    } catch (const std::exception& error) {
      log(LogLevel::kDebug, std::string("nothing is returned to the share: ") + error.what());
    }
  }

 private:
  const Share& share_;
  Pool& pool_;
  unsigned& idle_looks_;
  bool& is_floor_low_;  ///< and that was said
};

SharedBudget::SharedBudget(Share& share, Pool& pool) : share_(share), pool_(pool) {
  pool_.lower_budget(share_.lease());
  const NoSignals no_signals;
  thread_ = std::thread([this] { watch(); });
  pool_.draw_from(this);  // last: the constructor cannot fail any more
}

SharedBudget::~SharedBudget() {
  const NoCancel no_cancel;
  pool_.draw_from(nullptr);
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool SharedBudget::raise_locked(Bytes budget, Share::Effort effort) noexcept {
  const Bytes before = pool_.budget();
  Bytes most = share_.raise(budget, effort);
  looks_since_ = 0;
  has_wish_ = most < budget;
  changed_.notify_all();
  try {
    // Others asked for what is above this. We are about to return it, so we do not use it again.
    most = std::min(most, share_.kept({.held = budget, .committed = {}}));
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (most > before) pool_.raise_budget(most);
  return most > before;
}

bool SharedBudget::make_room_for(Bytes more) noexcept {
  if (more > share_.budget()) return false;  // hopeless: nobody has to return anything for it
  const Lock lock(mutex_);
  const Bytes taken = pool_.taken();
  if (taken + more <= pool_.budget()) return false;
  return raise_locked(taken + more, Share::Effort::kLong);  // or it is out of memory
}

bool SharedBudget::raise_to(Bytes budget) noexcept {
  const Lock lock(mutex_);
  return budget > pool_.budget() && raise_locked(budget, Share::Effort::kBrief);
}

void SharedBudget::serve(BudgetUser* user) noexcept {
  {
    const Lock lock(mutex_);
    user_ = user;
    idle_looks_ = 0;
  }
  changed_.notify_all();  // the thread may sleep with a surplus that nobody could be asked about
}

void SharedBudget::give_back() noexcept {
  {
    const Lock lock(mutex_);
    if (user_ == nullptr) return;
    Limit limit(share_, pool_, idle_looks_, is_floor_low_);
    user_->limit_to_use(limit);
  }
  try {
    // The device may still use a part of it: that comes back in a later round.
    if (pool_.taken() > pool_.budget()) (void)pool_.trim(pool_.budget());
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("nothing was released for the share: ") + error.what());
  }
  const Lock lock(mutex_);
  (void)share_.lower(std::max(pool_.budget(), pool_.taken()));
}

bool SharedBudget::has_something_to_return() const {
  return has_wish_ || (user_ != nullptr && share_.lease() > share_.floor());
}

void SharedBudget::watch() {
  pthread_setname_np(pthread_self(), "weir-share");
  Lock lock(mutex_);
  auto looked = std::chrono::steady_clock::now();
  while (!stop_) {
    const auto next = looked + (has_something_to_return() ? kLookAgain : kLookAtFloor);
    if (std::chrono::steady_clock::now() < next) {
      (void)changed_.wait_until(lock, next);
      continue;
    }
    looked = std::chrono::steady_clock::now();
    if (has_wish_ && ++looks_since_ >= kWishLooks) {
      share_.forget_wish();
      has_wish_ = false;
    }
    lock.unlock();
    share_.repair();
    give_back();
    lock.lock();
  }
}

}  // namespace weir
