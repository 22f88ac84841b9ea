#include "delays.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <sstream>

namespace weir::testing {
namespace {

using Clock = std::chrono::steady_clock;

enum class Wait : std::uint8_t { kNone, kLock, kCondition };

/// What one thread does. Slots are static, and a thread that ends gives its slot back.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<const char*> name{nullptr};
  std::atomic<const char*> doing{nullptr};
  std::atomic<Wait> waits{Wait::kNone};
  std::atomic<const void*> object{nullptr};
  std::atomic<Clock::rep> since{0};
};

constinit std::array<Slot, 64> slots{};
constinit std::atomic<std::uint64_t> delay_seed{0};  ///< 0: no delays
constinit std::atomic<std::uint64_t> delayed{0};

/// Also used while a thread ends, when what has a destructor is gone.
constinit thread_local Slot* own = nullptr;
constinit thread_local bool asked_for_slot = false;
constinit thread_local std::uint64_t random_state = 0;

struct GivesBack {
  ~GivesBack() {
    if (own == nullptr) return;
    own->name = own->doing = nullptr;
    own->waits = Wait::kNone;
    own->taken = false;
    own = nullptr;
  }
};

Slot* own_slot() {
  if (asked_for_slot) return own;
  asked_for_slot = true;
  for (Slot& slot : slots) {
    if (slot.taken.exchange(true)) continue;
    own = &slot;
    static thread_local const GivesBack kAtTheEnd;
    (void)kAtTheEnd;
    break;
  }
  return own;
}

/// Xorshift (Marsaglia 2003), begun anew with each seed.
std::uint64_t next_random(std::uint64_t from) {
  static constinit thread_local std::uint64_t begun_with = 0;
  if (begun_with != from) {
    begun_with = from;
    random_state = (from * 0x9E3779B97F4A7C15U) ^ reinterpret_cast<std::uintptr_t>(&random_state);
    if (random_state == 0) random_state = 1;
  }
  random_state ^= random_state << 13U;
  random_state ^= random_state >> 7U;
  random_state ^= random_state << 17U;
  return random_state;
}

void delay() {
  const std::uint64_t from = delay_seed.load(std::memory_order_relaxed);
  if (from == 0) return;
  const std::uint64_t choice = next_random(from) >> 20U;
  if (choice % 8 != 0) return;
  delayed.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t micros = 1 + (choice >> 8U) % 20;
  if (choice % 64 > 8) {  // most: other threads run only on other cores meanwhile
    const Clock::time_point until = Clock::now() + std::chrono::microseconds(micros);
    while (Clock::now() < until) continue;
    return;
  }
  if (choice % 64 == 8) {
    sched_yield();
    return;
  }
  const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(1000 * micros)};
  nanosleep(&time, nullptr);
}

/// Says what the thread waits for while it lives, with a delay before and after.
class Waiting {
 public:
  Waiting(Wait what, const void* object) : slot_(own_slot()) {
    delay();
    if (slot_ == nullptr) return;
    slot_->object = object;
    slot_->since = Clock::now().time_since_epoch().count();
    slot_->waits = what;
  }
  ~Waiting() {
    if (slot_ != nullptr) slot_->waits = Wait::kNone;
    delay();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Slot* const slot_;
};

}  // namespace

Delays::Delays(std::uint64_t from) { delay_seed = from == 0 ? 1 : from; }
Delays::~Delays() { delay_seed = 0; }
std::uint64_t Delays::count() { return delayed; }

NamedThread::NamedThread(const char* name) {
  if (Slot* slot = own_slot()) slot->name = name;
}
NamedThread::~NamedThread() {
  if (Slot* slot = own_slot()) slot->name = slot->doing = nullptr;
}
void NamedThread::doing(const char* what) {
  if (Slot* slot = own_slot()) slot->doing = what;
}

std::string who_waits(Clock::time_point now) {
  std::ostringstream report;
  for (const Slot& slot : slots) {
    if (!slot.taken) continue;
    const char* name = slot.name;
    const char* doing = slot.doing;
    report << (name != nullptr ? name : "a thread without a name");
    if (doing != nullptr) report << ", in " << doing;
    const Wait waits = slot.waits;
    if (waits == Wait::kNone) {
      report << ": runs\n";
      continue;
    }
    const Clock::time_point since{Clock::duration(slot.since)};
    report << (waits == Wait::kLock ? ": waits for the lock " : ": sleeps on the condition ")
           << slot.object << ", for "
           << std::chrono::duration_cast<std::chrono::milliseconds>(now - since).count() << " ms\n";
  }
  return report.str();
}

}  // namespace weir::testing

// What ld puts in the place of each call, and under what name the real one is.
using weir::testing::delay;
using weir::testing::Wait;
using weir::testing::Waiting;

int real_lock(pthread_mutex_t* mutex) asm("__real_pthread_mutex_lock");
int real_wait_until(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                    const timespec* until) asm("__real_pthread_cond_clockwait");
void real_wait(std::condition_variable* condition, std::unique_lock<std::mutex>& lock) asm(
    "__real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void real_notify_one(std::condition_variable* condition) asm(
    "__real__ZNSt18condition_variable10notify_oneEv");
void real_notify_all(std::condition_variable* condition) asm(
    "__real__ZNSt18condition_variable10notify_allEv");

int delayed_lock(pthread_mutex_t* mutex) asm("__wrap_pthread_mutex_lock");
int delayed_lock(pthread_mutex_t* mutex) {
  const Waiting waiting(Wait::kLock, mutex);
  return real_lock(mutex);
}

int delayed_wait_until(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                       const timespec* until) asm("__wrap_pthread_cond_clockwait");
int delayed_wait_until(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                       const timespec* until) {
  const Waiting waiting(Wait::kCondition, condition);
  return real_wait_until(condition, mutex, clock, until);
}

void delayed_wait(std::condition_variable* condition, std::unique_lock<std::mutex>& lock) asm(
    "__wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void delayed_wait(std::condition_variable* condition, std::unique_lock<std::mutex>& lock) {
  const Waiting waiting(Wait::kCondition, condition);
  real_wait(condition, lock);
}

void delayed_notify_one(std::condition_variable* condition) asm(
    "__wrap__ZNSt18condition_variable10notify_oneEv");
void delayed_notify_one(std::condition_variable* condition) {
  delay();
  real_notify_one(condition);
}

void delayed_notify_all(std::condition_variable* condition) asm(
    "__wrap__ZNSt18condition_variable10notify_allEv");
void delayed_notify_all(std::condition_variable* condition) {
  delay();
  real_notify_all(condition);
}
