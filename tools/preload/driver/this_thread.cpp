#include "tools/preload/driver/this_thread.hpp"

#include <pthread.h>

#include <exception>

namespace weir::preload {
namespace {

using Flag = std::shared_ptr<std::atomic<bool>>;

constinit std::atomic<std::uint64_t> users{0};
constinit std::atomic<std::uint64_t> users_ended{0};

/// Calls no driver function: the driver's thread state may be gone.
void end_thread(void* /*flag*/) noexcept {
  const std::unique_ptr<Flag> ended(this_thread.end);
  if (this_thread.own_stream != 0) {
    // In this order, so that a concurrent reader sees it at least once (own_streams).
    users_ended.fetch_add(1);
    users.fetch_sub(1);
    this_thread.own_stream = 0;
  }
  (*ended)->store(true, std::memory_order_release);
  this_thread.end = nullptr;
  this_thread.number = 0;
}

/// A key of the C library instead of a thread_local with a destructor: its destructor runs after
/// those, and again if a later one uses the thread's stream.
struct Key {
  Key() noexcept : made(pthread_key_create(&key, &end_thread) == 0) {}
  pthread_key_t key = 0;
  bool made = false;
};

}  // namespace

std::uint64_t thread_number() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  if (this_thread.number == 0) this_thread.number = ++last;
  return this_thread.number;
}

ThreadEnded end_of_this_thread() {
  if (this_thread.end != nullptr) return *this_thread.end;
  static const Key kKey;
  auto made = std::make_unique<Flag>(std::make_shared<std::atomic<bool>>(false));
  if (!kKey.made || pthread_setspecific(kKey.key, made.get()) != 0) return nullptr;
  this_thread.end = made.release();
  return *this_thread.end;
}

void use_own_stream() noexcept {
  if (this_thread.own_stream != 0) return;
  this_thread.own_stream = thread_number();
  users.fetch_add(1);
  try {
    (void)end_of_this_thread();  // without notice of its end it counts as a user permanently
  } catch (const std::exception&) {
    return;
  }
}

OwnStreams own_streams() noexcept {
  OwnStreams result;
  const std::uint64_t all = users.load();
  result.here = this_thread.own_stream != 0;
  result.elsewhere = all > (result.here ? 1U : 0U);
  result.ended = users_ended.load();
  return result;
}

}  // namespace weir::preload
