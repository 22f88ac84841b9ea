#pragma once

// An upstream's page source, made on first use: most pools never need one, and making one opens a
// file or calls a driver.

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
  /// Returns what `make()` gave the first time, a unique pointer to a PageSource. Returns null if
  /// that was null or threw, which is logged.
  template <typename Make>
  [[nodiscard]] PageSource* get(const Make& make) noexcept {
    std::call_once(once_, [&]() noexcept {
      try {
        source_ = make();
        there_.store(source_.get(), std::memory_order_release);
      } catch (const std::exception& error) {
        log(LogLevel::kError, std::string("memory cannot be mapped page by page: ") + error.what());
      }
    });
    return source_.get();
  }
  /// Returns what `get` gave, or null before its first call.
  [[nodiscard]] PageSource* get_if_any() const noexcept {
    return there_.load(std::memory_order_acquire);
  }

 private:
  std::once_flag once_;
  std::unique_ptr<PageSource> source_;
  std::atomic<PageSource*> there_{nullptr};
};

}  // namespace weir
