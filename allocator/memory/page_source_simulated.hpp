#pragma once

// Pages that are only numbers, at addresses without memory: a replay maps millions of them.

#include <atomic>

#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir {

/// Shares the capacity and addresses of a SimulatedUpstream. Never reserves an address or makes a
/// page twice. Does not detect mapping over a mapping.
class SimulatedPages final : public PageSource {
 public:
  /// Takes pages from `gauge` and addresses from `next_address`. Both outlive this.
  SimulatedPages(CapacityGauge& gauge, std::atomic<std::uint64_t>& next_address,
                 Bytes page_size) noexcept
      : gauge_(gauge), next_address_(next_address), page_size_(page_size) {}
  [[nodiscard]] Bytes page_size() const override { return page_size_; }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* /*address*/, Bytes /*size*/) noexcept override {}
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override {
    return mappings.size();
  }
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override {
    return mappings.size();
  }

 private:
  CapacityGauge& gauge_;
  std::atomic<std::uint64_t>& next_address_;
  const Bytes page_size_;
  std::atomic<std::uint64_t> next_page_{1};
};

}  // namespace weir
