#pragma once

// An upstream that counts its calls and reports them to a listener.

#include <atomic>
#include <functional>
#include <memory>

#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir::replay {

/// Memory that came from the driver or went back to it.
struct DriverEvent {
  std::uint64_t address = 0;
  Bytes size;
  bool obtained = true;
};

struct DriverCalls {
  std::atomic<std::uint64_t> calls{0};         ///< also refused ones
  std::atomic<std::uint64_t> mapped_pages{0};  ///< pages mapped
  std::function<void(const DriverEvent&)> tell;
};

/// Forwards and counts every call. Making, mapping, unmapping and freeing a page count one each, as
/// they are separate driver calls.
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
  /// Sets the listener, which the calling thread of each event invokes. Call before the first event
  /// only.
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
