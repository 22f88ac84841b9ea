#pragma once

// An upstream whose calls are counted, and told to who wants to draw them.

#include <atomic>
#include <functional>
#include <memory>

#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir::replay {

/// Memory came from the driver, or went back to it.
struct DriverEvent {
  std::uint64_t address = 0;
  Bytes size;
  bool obtained = true;
};

struct DriverCalls {
  std::atomic<std::uint64_t> calls{0};         ///< also those that were refused
  std::atomic<std::uint64_t> mapped_pages{0};  ///< that were mapped
  std::function<void(const DriverEvent&)> tell;
};

/// Passes every call on, and counts it: a page that is made, mapped, unmapped or given back is a
/// call each, as it is with a driver.
class CountedUpstream final : public Upstream {
 public:
  explicit CountedUpstream(std::unique_ptr<Upstream> upstream);
  ~CountedUpstream() override;

  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return upstream_->capacity(); }
  [[nodiscard]] Bytes available() const override { return upstream_->available(); }
  [[nodiscard]] PageSource* pages() noexcept override;

  [[nodiscard]] const DriverCalls& counts() const noexcept { return counts_; }
  /// Called for each event from now on, by whoever makes it happen. Before the first call only.
  void tell(std::function<void(const DriverEvent&)> listener) {
    counts_.tell = std::move(listener);
  }

 private:
  class CountedPages;

  const std::unique_ptr<Upstream> upstream_;
  DriverCalls counts_;
  std::unique_ptr<CountedPages> pages_;
};

}  // namespace weir::replay
