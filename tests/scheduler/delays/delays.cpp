#include "delays.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace weir::testing {
namespace {

using Clock = std::chrono::steady_clock;

constinit std::atomic<std::uint64_t> delay_seed{0};  ///< 0: no delays
constinit std::atomic<std::uint64_t> delayed{0};

/// Xorshift (Marsaglia 2003), begun anew with each seed.
std::uint64_t next_random(std::uint64_t from) {
  // Also used while a thread ends, when what has a destructor is gone.
  static constinit thread_local std::uint64_t begun_with = 0;
  static constinit thread_local std::uint64_t random_state = 0;
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

/// A delay before a call and one after it.
struct Delayed {
  Delayed() { delay(); }
  ~Delayed() { delay(); }
  Delayed(const Delayed&) = delete;
  Delayed& operator=(const Delayed&) = delete;
};

}  // namespace

Delays::Delays(std::uint64_t from) { delay_seed = from == 0 ? 1 : from; }
Delays::~Delays() { delay_seed = 0; }
std::uint64_t Delays::count() { return delayed; }

}  // namespace weir::testing

// What ld puts in the place of each call, and under what name the real one is.
using weir::testing::delay;
using weir::testing::Delayed;

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
  const Delayed around;
  return real_lock(mutex);
}

int delayed_wait_until(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                       const timespec* until) asm("__wrap_pthread_cond_clockwait");
int delayed_wait_until(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                       const timespec* until) {
  const Delayed around;
  return real_wait_until(condition, mutex, clock, until);
}

void delayed_wait(std::condition_variable* condition, std::unique_lock<std::mutex>& lock) asm(
    "__wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void delayed_wait(std::condition_variable* condition, std::unique_lock<std::mutex>& lock) {
  const Delayed around;
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
