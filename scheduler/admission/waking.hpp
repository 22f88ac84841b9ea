#pragma once

#include <memory>
#include <utility>

#include "allocator/base/condition.hpp"
#include "scheduler/admission/admission.hpp"

namespace weir {

/// The lock, for a scope that may wake a sleeper: it is notified after the lock is released; see
/// Condition.
class WEIR_SCOPED_CAPABILITY Admission::Waking : public Lock {
 public:
  explicit Waking(Mutex& mutex) WEIR_ACQUIRE(mutex) : Lock(mutex) {}
  ~Waking() WEIR_RELEASE() {
    if (sleeper_ == nullptr) return;
    unlock();
    sleeper_->notify_one();
  }
  Waking(const Waking&) = delete;
  Waking& operator=(const Waking&) = delete;

  /// Wakes the thread that sleeps there, if any. It may end before it is notified, so its condition
  /// is shared.
  void wake(const std::shared_ptr<Condition>& sleeper) noexcept {
    if (sleeper == nullptr) return;
    wake_now();  // rarely more than one is woken
    sleeper_ = sleeper;
  }
  /// Does not wait for the release.
  void wake_now() noexcept {
    if (sleeper_ != nullptr) std::exchange(sleeper_, nullptr)->notify_one();
  }

 private:
  std::shared_ptr<Condition> sleeper_;
};

}  // namespace weir
