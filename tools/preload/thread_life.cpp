#include "tools/preload/thread_life.hpp"

#include <pthread.h>

namespace weir::preload {
namespace {

using Flag = std::shared_ptr<std::atomic<bool>>;

constinit thread_local std::uint64_t number = 0;
constinit thread_local Flag* flag = nullptr;

/// Calls no driver, whose own state of the thread may be gone.
void end_thread(void* /*flag*/) noexcept {
  const std::unique_ptr<Flag> ended(flag);
  (*ended)->store(true, std::memory_order_release);
  flag = nullptr;
  number = 0;
}

/// A key of the C library's and no thread_local with a destructor: it is called after those, and
/// again where one that is called later uses the thread's stream once more.
struct Key {
  Key() noexcept : made(pthread_key_create(&key, &end_thread) == 0) {}
  pthread_key_t key = 0;
  bool made = false;
};

}  // namespace

std::uint64_t this_thread() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  if (number == 0) number = ++last;
  return number;
}

ThreadEnded end_of_this_thread() {
  if (flag != nullptr) return *flag;
  static const Key kKey;
  auto made = std::make_unique<Flag>(std::make_shared<std::atomic<bool>>(false));
  if (!kKey.made || pthread_setspecific(kKey.key, made.get()) != 0) return nullptr;
  flag = made.release();
  return *flag;
}

}  // namespace weir::preload
