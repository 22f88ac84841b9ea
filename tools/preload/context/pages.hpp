#pragma once

// Device memory of one context page by page, under the budget of its device.

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/memory/driver_pages_cuda.hpp"
#include "allocator/memory/page_source.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"

namespace weir::preload {

/// Pages and addresses are the process's, and do not go with the context: `forget` gives back what
/// there is, and from then on there is nothing. So all that exists is in tables here.
///
/// While a stream of the context is captured nothing is unmapped, and pages are destroyed after the
/// capture. Calls go to the driver's own functions, past the hooks.
class ContextPages final : public PageSource {
 public:
  /// Null where the driver or the device has no such thing.
  [[nodiscard]] static std::unique_ptr<ContextPages> open(const Driver& driver, CUcontext context,
                                                          Account& account, const Fences& fences);
  ContextPages(const DriverPages& pages, const Driver& driver, CUcontext context, Account& account,
               const Fences& fences) noexcept
      : pages_(pages), driver_(driver), context_(context), account_(account), fences_(fences) {}

  [[nodiscard]] Bytes page_size() const override { return pages_.page_size(); }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* address, Bytes size) noexcept override;
  /// DriverError for a fault that is not about room.
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override;
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override;

  /// Whether the address is one of those reserved here.
  [[nodiscard]] bool has(CUdeviceptr address) const noexcept;
  /// Work on `device` may use all that is mapped here, now and later. False where the driver does
  /// not let it.
  [[nodiscard]] bool allow(int device) noexcept;
  /// Whether pages were not destroyed since a capture was under way.
  [[nodiscard]] bool holds() const noexcept {
    const Lock lock(mutex_);
    return held_ != 0;
  }
  /// No capture is under way any more: destroys what was held.
  void give_back_held() noexcept;
  /// The context is gone, and its work with it.
  void forget() noexcept;

 private:
  /// Calls `work`, which calls the driver, in the context if there still is one.
  template <typename Work>
  PagesDone in_driver(const Work& work) const noexcept;
  /// Puts mappings in the table; how many, from the front.
  [[nodiscard]] std::size_t note(std::span<const Mapping> mappings) noexcept;
  void strike(std::span<const Mapping> mappings) noexcept;
  /// Access that was allowed while pages were being mapped, by somebody who knew of fewer devices.
  [[nodiscard]] bool let_in_late(std::span<const Mapping> mapped, std::size_t known) noexcept;
  /// Of pages that are in no table any more.
  void release(std::span<const Page> pages) noexcept;

  const DriverPages pages_;
  const Driver& driver_;
  const CUcontext context_;
  Account& account_;
  const Fences& fences_;

  mutable Mutex mutex_{LockRank::kLeaf};
  bool gone_ WEIR_GUARDED_BY(mutex_) = false;
  std::map<CUdeviceptr, Bytes> ranges_ WEIR_GUARDED_BY(mutex_);
  std::map<CUdeviceptr, Page> mapped_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, bool> made_ WEIR_GUARDED_BY(mutex_);  ///< page: to be destroyed
  std::size_t held_ WEIR_GUARDED_BY(mutex_) = 0;                          ///< of those
  std::vector<int> others_ WEIR_GUARDED_BY(mutex_);  ///< devices that have access, too
};

}  // namespace weir::preload
