#pragma once

// Host memory in pages of 4 KiB, the operating system's own: a pool over pages can then be tight at
// budgets of KiB, where one page of HostUpstream would exceed the budget.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include "allocator/memory/page_source.hpp"
#include "allocator/memory/upstream.hpp"

namespace weir::testing {

/// Page n is the n-th piece of a file in memory, counted from 1.
class SmallPages final : public PageSource {
 public:
  static constexpr Bytes kSize = kib(4);

  explicit SmallPages(Bytes capacity)
      : pages_(capacity.count / kSize.count), file_(memfd_create("small-pages", MFD_CLOEXEC)) {
    if (ftruncate(file_, static_cast<off_t>(pages_ * kSize.count)) != 0) {
      throw std::runtime_error("no file in memory");
    }
  }
  ~SmallPages() override { close(file_); }

  [[nodiscard]] Bytes page_size() const override { return kSize; }
  [[nodiscard]] void* reserve(Bytes size) override {
    void* const address = mmap(nullptr, size.count, PROT_NONE, kNothing, -1, 0);
    return address != MAP_FAILED ? address : nullptr;
  }
  void unreserve(void* address, Bytes size) noexcept override { munmap(address, size.count); }
  [[nodiscard]] std::size_t create(std::span<Page> pages) override {
    const std::lock_guard lock(mutex_);
    // Room for the return of all of them, which cannot fail.
    const std::size_t most = std::min(made_ + pages.size(), pages_);
    if (free_.capacity() < most) free_.reserve(2 * most);
    std::size_t made = 0;
    for (; made < pages.size(); ++made) {
      if (!free_.empty()) {
        pages[made] = free_.back();
        free_.pop_back();
      } else if (made_ < pages_) {
        pages[made] = Page{++made_};
      } else {
        break;
      }
    }
    return made;
  }
  void destroy(std::span<const Page> pages) noexcept override {
    const std::lock_guard lock(mutex_);
    free_.insert(free_.end(), pages.begin(), pages.end());
  }
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override {
    for (std::size_t done = 0; done < mappings.size(); ++done) {
      const auto offset = static_cast<off_t>((mappings[done].page.id - 1) * kSize.count);
      if (mmap(mappings[done].address, kSize.count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
               file_, offset) == MAP_FAILED) {
        return done;
      }
    }
    return mappings.size();
  }
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override {
    for (std::size_t done = 0; done < mappings.size(); ++done) {
      if (mmap(mappings[done].address, kSize.count, PROT_NONE, kNothing | MAP_FIXED, -1, 0) ==
          MAP_FAILED) {
        return done;
      }
    }
    return mappings.size();
  }

 private:
  static constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  const std::uint64_t pages_;
  const int file_;
  std::mutex mutex_;
  std::uint64_t made_ = 0;
  std::vector<Page> free_;
};

/// HostUpstream with these pages. Whole segments and pages have separate capacities.
class SmallPagesUpstream final : public Upstream {
 public:
  explicit SmallPagesUpstream(Bytes capacity) : whole_(capacity), pages_(capacity) {}
  [[nodiscard]] void* allocate(Bytes size) override { return whole_.allocate(size); }
  void deallocate(void* pointer, Bytes size) noexcept override { whole_.deallocate(pointer, size); }
  [[nodiscard]] Bytes capacity() const override { return whole_.capacity(); }
  [[nodiscard]] PageSource* pages() noexcept override { return &pages_; }

 private:
  HostUpstream whole_;
  SmallPages pages_;
};

}  // namespace weir::testing
