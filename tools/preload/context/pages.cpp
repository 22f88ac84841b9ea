#include "tools/preload/context/pages.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"

namespace weir::preload {
namespace {

CUdeviceptr device_address(const void* address) noexcept {
  return reinterpret_cast<CUdeviceptr>(address);
}

void report_fault(const PagesDone& done, const char* what) noexcept {
  if (done.code == CUDA_SUCCESS) return;
  try {
    log(LogLevel::kError, std::string(what) + ": " + done.call + " failed (" +
                              std::to_string(static_cast<int>(done.code)) + ")");
  } catch (const std::exception&) {
    log(LogLevel::kError, what);
  }
}

PageCalls calls_of(const Driver& driver) noexcept {
  return {.granularity = driver.cuMemGetAllocationGranularity,
          .reserve = driver.cuMemAddressReserve,
          .unreserve = driver.cuMemAddressFree,
          .create = driver.cuMemCreate,
          .release = driver.cuMemRelease,
          .map = driver.cuMemMap,
          .unmap = driver.cuMemUnmap,
          .set_access = driver.cuMemSetAccess,
          .export_page = driver.cuMemExportToShareableHandle};
}

}  // namespace

std::unique_ptr<ContextPages> ContextPages::open(const Driver& driver, CUcontext context,
                                                 Account& account, const Fences& fences) {
  const PageCalls calls = calls_of(driver);
  int supported = 0;
  const Inside inside;
  if (!calls.complete() || driver.cuDeviceGetAttribute == nullptr ||
      driver.cuDeviceGetAttribute(&supported,
                                  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                  account.device()) != CUDA_SUCCESS ||
      supported == 0) {
    return nullptr;
  }
  const DriverPages pages(calls, account.device());
  if (pages.page_size().count == 0) return nullptr;
  int files = 0;
  (void)driver.cuDeviceGetAttribute(
      &files, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, account.device());
  return std::make_unique<ContextPages>(pages, driver, context, account, fences,
                                        files != 0 && calls.export_page != nullptr);
}

template <typename Work>
PagesDone ContextPages::in_driver(const Work& work) const noexcept {
  const NoCancel no_cancel;
  const Inside inside;
  bool gone = false;
  {
    const Lock lock(mutex_);
    gone = gone_;
  }
  if (!gone) {
    const ContextScope scope(driver_, context_);
    if (scope.good()) return work();
  }
  // <cuda.h> documents for none of these functions that it needs a context.
  const RelaxedCaptures relaxed(driver_);
  return work();
}

void* ContextPages::reserve(Bytes size) {
  void* address = nullptr;
  const auto ask = [&]() -> PagesDone {
    address = pages_.reserve(size);
    return {};
  };
  if (in_driver(ask).code != CUDA_SUCCESS || address == nullptr) return nullptr;
  try {
    const Lock lock(mutex_);
    if (!gone_) {
      ranges_.emplace(device_address(address), size);
      return address;
    }
  } catch (const std::exception&) {
    // As if the driver had none: host memory is short.
  }
  (void)in_driver([&]() -> PagesDone { return {0, pages_.unreserve(address, size), ""}; });
  return nullptr;
}

void ContextPages::unreserve(void* address, Bytes size) noexcept {
  {
    const Lock lock(mutex_);
    if (ranges_.erase(device_address(address)) == 0) return;
  }
  report_fault(in_driver([&]() -> PagesDone {
                 return {0, pages_.unreserve(address, size), "cuMemAddressFree"};
               }),
               "addresses cannot be released");
}

PagesDone ContextPages::create_in_driver(std::span<Page> pages) noexcept {
  if (can_share_.load() && shares_new.load()) {
    const PagesDone done = in_driver([&] { return pages_.create(pages, PageSharing::kByFile); });
    const bool refused =
        done.code == CUDA_ERROR_NOT_SUPPORTED || done.code == CUDA_ERROR_NOT_PERMITTED;
    if (!refused || done.count != 0) return done;
    can_share_.store(false);  // as in a sandbox, whatever the device's attribute says
  }
  return in_driver([&] { return pages_.create(pages); });
}

std::optional<std::vector<int>> ContextPages::files_of(CUdeviceptr begin, CUdeviceptr end) {
  std::vector<Page> pages;
  {
    const Lock lock(mutex_);
    for (CUdeviceptr at = begin; at < end; at += page_size().count) {
      const auto found = mapped_.find(at);
      if (found == mapped_.end()) return std::nullopt;
      pages.push_back(found->second);
    }
  }
  std::vector<int> files;
  files.reserve(pages.size());
  for (const Page page : pages) {
    const auto file = file_of(page);
    if (!file) return std::nullopt;  // those made stay with their pages
    files.push_back(*file);
  }
  return files;
}

std::optional<int> ContextPages::file_of(Page page) {
  {
    const Lock lock(mutex_);
    const auto found = files_.find(page.id);
    if (found != files_.end()) return found->second;
  }
  int file = -1;
  const PagesDone done = in_driver([&]() -> PagesDone {
    return {0, pages_.export_page(page, file), "cuMemExport"};
  });
  if (done.code != CUDA_SUCCESS) return std::nullopt;
  const auto keep = [&] {
    const Lock lock(mutex_);
    return files_.emplace(page.id, file).first->second;
  };
  try {
    const int kept = keep();
    if (kept != file) (void)close(file);  // another thread was faster
    return kept;
  } catch (...) {
    (void)close(file);
    throw;
  }
}

void ContextPages::close_files(std::span<const Page> pages) noexcept {
  for (const Page page : pages) {
    int file = -1;
    {
      const Lock lock(mutex_);
      const auto found = files_.find(page.id);
      if (found == files_.end()) continue;
      file = found->second;
      files_.erase(found);
    }
    (void)close(file);
  }
}

std::size_t ContextPages::create(std::span<Page> pages) {
  PagesDone done;
  {
    Account::Claim claim(account_, pages.size(), page_size());
    done = create_in_driver(pages.first(claim.count()));
    claim.keep(done.count);
  }
  const auto made = pages.first(done.count);
  std::size_t noted = 0;
  bool gone = false;
  try {
    const Lock lock(mutex_);
    gone = gone_;
    if (!gone) {
      for (; noted < made.size(); ++noted) made_.emplace(made[noted].id, false);
    }
  } catch (const std::exception&) {
    // Host memory is short: create fewer.
  }
  release(made.subspan(noted));
  if (done.code == CUDA_SUCCESS || done.code == CUDA_ERROR_OUT_OF_MEMORY || gone) return noted;
  destroy(made.first(noted));
  throw DriverError(done.call, done.code);
}

void ContextPages::destroy(std::span<const Page> pages) noexcept {
  const bool capturing = fences_.capturing();
  {
    const Lock lock(mutex_);
    if (gone_) return;
    for (const Page page : pages) {
      const auto found = made_.find(page.id);
      if (found == made_.end()) continue;
      if (capturing) {
        found->second = true;
        ++held_;
      } else {
        made_.erase(found);
      }
    }
  }
  if (!capturing) {
    release(pages);
  } else if (!fences_.capturing()) {
    release_held();  // the capture ended meanwhile
  }
}

void ContextPages::release(std::span<const Page> pages) noexcept {
  if (pages.empty()) return;
  close_files(pages);
  const Account::Releasing releasing(account_);
  const PagesDone done = in_driver([&] { return pages_.destroy(pages); });
  // Memory that cannot be returned stays charged permanently.
  account_.withdraw(page_size() * done.count);
  report_fault(done, "pages cannot be released");
}

void ContextPages::release_held() noexcept {
  for (;;) {
    std::array<Page, 64> some{};
    std::size_t count = 0;
    {
      const Lock lock(mutex_);
      if (held_ == 0) return;
      for (auto each = made_.begin(); each != made_.end() && count < some.size();) {
        if (each->second) {
          some.at(count++) = Page{each->first};
          each = made_.erase(each);
        } else {
          ++each;
        }
      }
      held_ -= count;
    }
    release(std::span(some).first(count));
  }
}

std::size_t ContextPages::note(std::span<const Mapping> mappings) noexcept {
  const Lock lock(mutex_);
  if (gone_) return 0;
  std::size_t noted = 0;
  try {
    for (; noted < mappings.size(); ++noted) {
      mapped_.emplace(device_address(mappings[noted].address), mappings[noted].page);
    }
  } catch (const std::exception&) {
    // Host memory is short: map fewer.
  }
  return noted;
}

void ContextPages::strike(std::span<const Mapping> mappings) noexcept {
  const Lock lock(mutex_);
  for (const Mapping& each : mappings) mapped_.erase(device_address(each.address));
}

std::size_t ContextPages::map(std::span<const Mapping> mappings) noexcept {
  const std::size_t noted = note(mappings);
  PagesDone done;
  std::size_t known = 0;
  try {
    std::vector<int> others;
    {
      const Lock lock(mutex_);
      others = others_;
    }
    known = others.size();
    done = in_driver([&] { return pages_.map(mappings.first(noted), others); });
  } catch (const std::exception&) {
    done = {0, CUDA_ERROR_OUT_OF_MEMORY, ""};
  }
  strike(mappings.subspan(done.count, noted - done.count));
  if (!let_in_late(mappings.first(done.count), known)) {
    (void)in_driver([&] { return pages_.unmap(mappings.first(done.count)); });
    strike(mappings.first(done.count));
    return 0;
  }
  if (done.code != CUDA_ERROR_OUT_OF_MEMORY) report_fault(done, "a page cannot be mapped");
  return done.count;
}

bool ContextPages::let_in_late(std::span<const Mapping> mapped, std::size_t known) noexcept {
  for (;; ++known) {
    int device = 0;
    {
      const Lock lock(mutex_);
      if (gone_) return false;  // pages mapped since then must go too
      if (known >= others_.size()) return true;
      device = others_[known];
    }
    for (const Mapping& each : mapped) {
      const PagesDone done = in_driver([&]() -> PagesDone {
        return {0, pages_.allow(each.address, page_size(), device), "cuMemSetAccess"};
      });
      if (done.code != CUDA_SUCCESS) return false;
    }
  }
}

std::size_t ContextPages::unmap(std::span<const Mapping> mappings) noexcept {
  if (fences_.capturing()) return 0;
  {
    const Lock lock(mutex_);
    if (gone_) return mappings.size();
  }
  const PagesDone done = in_driver([&] { return pages_.unmap(mappings); });
  strike(mappings.first(done.count));
  report_fault(done, "a page cannot be unmapped");
  return done.count;
}

bool ContextPages::has(CUdeviceptr address) const noexcept {
  const Lock lock(mutex_);
  const auto after = ranges_.upper_bound(address);
  return after != ranges_.begin() &&
         address - std::prev(after)->first < std::prev(after)->second.count;
}

bool ContextPages::allow(int device) noexcept {
  std::vector<CUdeviceptr> there;
  try {
    const Lock lock(mutex_);
    if (gone_ || std::ranges::find(others_, device) != others_.end()) return true;
    there.reserve(mapped_.size());
    for (const auto& [address, page] : mapped_) there.push_back(address);
    others_.push_back(device);
  } catch (const std::exception&) {
    return false;
  }
  bool all = true;
  for (const CUdeviceptr address : there) {
    const PagesDone done = in_driver([&]() -> PagesDone {
      return {0, pages_.allow(reinterpret_cast<void*>(address), page_size(), device), ""};
    });
    if (done.code == CUDA_SUCCESS) continue;
    const Lock lock(mutex_);
    // A page being mapped gets its access from the mapping thread; an unmapped page needs none.
    all = all && !mapped_.contains(address);
  }
  return all;
}

void ContextPages::forget() noexcept {
  decltype(ranges_) ranges;
  decltype(mapped_) mapped;
  decltype(made_) made;
  decltype(files_) files;
  {
    const Lock lock(mutex_);
    gone_ = true;
    ranges.swap(ranges_);
    mapped.swap(mapped_);
    made.swap(made_);
    files.swap(files_);
    held_ = 0;
  }
  for (const auto& [page, file] : files) (void)close(file);
  // Errors are ignored: a driver that ends everything with the context no longer knows these.
  (void)in_driver([&]() -> PagesDone {
    for (const auto& [address, page] : mapped) {
      const Mapping mapping{reinterpret_cast<void*>(address), page};
      (void)pages_.unmap({&mapping, 1});
    }
    for (const auto& [id, held] : made) {
      const Page page{id};
      (void)pages_.destroy({&page, 1});
    }
    for (const auto& [address, size] : ranges) {
      (void)pages_.unreserve(reinterpret_cast<void*>(address), size);
    }
    return {};
  });
  account_.withdraw(page_size() * made.size());
}

}  // namespace weir::preload
