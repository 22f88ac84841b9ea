#pragma once

// The page source that an upstream has once somebody asks for it: most pools never do, and making
// one opens a file or asks a driver.

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "allocator/base/log.hpp"
#include "allocator/memory/page_source.hpp"

namespace weir {

/// Thread-safe.
class PageSourceOnDemand {
 public:
  /// What `make()`, a unique pointer to a PageSource, gave the first time; null where that was null
  /// or threw, which is logged.
  template <typename Make>
  [[nodiscard]] PageSource* get(const Make& make) noexcept {
    std::call_once(once_, [&]() noexcept {
      try {
        source_ = make();
        there_.store(source_.get(), std::memory_order_release);
      } catch (const std::exception& error) {
        log(LogLevel::kError, std::string("memory cannot be had page by page: ") + error.what());
      }
    });
    return source_.get();
  }
  /// What `get` gave; null where nobody has asked yet, too.
  [[nodiscard]] PageSource* get_if_any() const noexcept {
    return there_.load(std::memory_order_acquire);
  }

 private:
  std::once_flag once_;
  std::unique_ptr<PageSource> source_;
  std::atomic<PageSource*> there_{nullptr};
};

}  // namespace weir
