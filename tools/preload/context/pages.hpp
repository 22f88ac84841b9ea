#pragma once

// Device memory of one context, page by page, under the device's budget.

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

/// Pages and addresses belong to the process and outlive the context. So the tables here list all
/// of them; `forget` gives them back and empties the tables.
///
/// While a stream of the context is captured nothing is unmapped, and pages are destroyed after the
/// capture. Calls bypass the hooks.
class ContextPages final : public PageSource {
 public:
  /// Null if the driver or the device does not support it.
  [[nodiscard]] static std::unique_ptr<ContextPages> open(const Driver& driver, CUcontext context,
                                                          Account& account, const Fences& fences);
  ContextPages(const DriverPages& pages, const Driver& driver, CUcontext context, Account& account,
               const Fences& fences) noexcept
      : pages_(pages), driver_(driver), context_(context), account_(account), fences_(fences) {}

  [[nodiscard]] Bytes page_size() const override { return pages_.page_size(); }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* address, Bytes size) noexcept override;
  /// Throws DriverError for a fault other than lack of room.
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override;
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override;

  /// Returns whether the address is reserved here.
  [[nodiscard]] bool has(CUdeviceptr address) const noexcept;
  /// Lets work on `device` use everything mapped here, now and later. Returns false if the driver
  /// refuses.
  [[nodiscard]] bool allow(int device) noexcept;
  /// Returns whether pages are kept because of a capture.
  [[nodiscard]] bool holds() const noexcept {
    const Lock lock(mutex_);
    return held_ != 0;
  }
  /// Call when no capture is in progress: destroys the kept pages.
  void give_back_held() noexcept;
  /// Drops everything after the context and its work have ended.
  void forget() noexcept;

 private:
  /// Calls `work`, which calls the driver, in the context if it still exists.
  template <typename Work>
  PagesDone in_driver(const Work& work) const noexcept;
  /// Adds mappings to the table. Returns how many, from the front.
  [[nodiscard]] std::size_t note(std::span<const Mapping> mappings) noexcept;
  void strike(std::span<const Mapping> mappings) noexcept;
  /// Adds access that was allowed while a thread that knew fewer devices mapped pages.
  [[nodiscard]] bool let_in_late(std::span<const Mapping> mapped, std::size_t known) noexcept;
  /// Releases pages that are in no table any more.
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
  std::unordered_map<std::uint64_t, bool> made_ WEIR_GUARDED_BY(mutex_);  ///< page: whether to
                                                                          ///< destroy it
  std::size_t held_ WEIR_GUARDED_BY(mutex_) = 0;                          ///< number of kept pages
  std::vector<int> others_ WEIR_GUARDED_BY(mutex_);  ///< other devices with access
};

}  // namespace weir::preload
