#pragma once

// Device memory of one context, page by page, under the device's budget.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/memory/driver_pages_cuda.hpp"
#include "allocator/memory/page_source.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"

namespace weir::preload {

/// Pages and addresses belong to the process and outlive the context. So the tables here list all
/// of them; `forget` releases them and empties the tables.
///
/// While a stream of the context is captured nothing is unmapped, and pages are destroyed after the
/// capture. Calls bypass the hooks.
class ContextPages final : public PageSource {
 public:
  /// Null if the driver or the device does not support it.
  [[nodiscard]] static std::unique_ptr<ContextPages> open(const Driver& driver, CUcontext context,
                                                          Account& account, const Fences& fences);
  ContextPages(const DriverPages& pages, const Driver& driver, CUcontext context, Account& account,
               const Fences& fences, bool can_share) noexcept
      : pages_(pages),
        driver_(driver),
        context_(context),
        account_(account),
        fences_(fences),
        can_share_(can_share) {}
  /// Lets other processes map the pages that are created from now on, in all contexts, where the
  /// device can do that.
  static void share_new_ones() noexcept { shares_new.store(true); }

  [[nodiscard]] Bytes page_size() const override { return pages_.page_size(); }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* address, Bytes size) noexcept override;
  /// Throws DriverError for a fault other than lack of room.
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override;
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override;

  /// Returns a file descriptor for each page in the range, in order, by which another process can
  /// map it; nothing if one of them cannot be shared. They stay open until their page is destroyed.
  /// The range begins and ends with a page, and its pages must not move meanwhile.
  [[nodiscard]] std::optional<std::vector<int>> files_of(CUdeviceptr begin, CUdeviceptr end);

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
  [[nodiscard]] Bytes held() const noexcept {
    const Lock lock(mutex_);
    return page_size() * held_;
  }
  /// Call when no capture is in progress: destroys the kept pages.
  void release_held() noexcept;
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
  /// Creates pages in the driver, which others can map if that is wanted and possible.
  [[nodiscard]] PagesDone create_in_driver(std::span<Page> pages) noexcept;
  /// Returns the page's file descriptor, and makes it if needed; nothing if it cannot be shared.
  [[nodiscard]] std::optional<int> file_of(Page page);
  void close_files(std::span<const Page> pages) noexcept;
  /// Releases pages that are in no table any more.
  void release(std::span<const Page> pages) noexcept;

  const DriverPages pages_;
  const Driver& driver_;
  const CUcontext context_;
  Account& account_;
  const Fences& fences_;
  std::atomic<bool> can_share_;
  inline static constinit std::atomic<bool> shares_new{false};

  mutable Mutex mutex_{LockRank::kLeaf};
  bool gone_ WEIR_GUARDED_BY(mutex_) = false;
  std::map<CUdeviceptr, Bytes> ranges_ WEIR_GUARDED_BY(mutex_);
  std::map<CUdeviceptr, Page> mapped_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, bool> made_ WEIR_GUARDED_BY(mutex_);  ///< page: whether to
                                                                          ///< destroy it
  std::size_t held_ WEIR_GUARDED_BY(mutex_) = 0;                          ///< number of kept pages
  std::unordered_map<std::uint64_t, int> files_ WEIR_GUARDED_BY(mutex_);  ///< of shared pages
  std::vector<int> others_ WEIR_GUARDED_BY(mutex_);  ///< other devices with access
};

}  // namespace weir::preload
