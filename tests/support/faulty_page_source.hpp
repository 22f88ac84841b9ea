#pragma once

// Wraps a page source: refuses or throws on demand, counts, and checks that calls follow the
// contract and hold no lock of ours.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>

#include "allocator/base/mutex.hpp"
#include "allocator/memory/page_source.hpp"
#include "support/fault.hpp"
#include "support/level.hpp"

namespace weir::testing {

/// Faults hit single pages: those before it in the same call are done, the rest are not. A call
/// that throws does nothing.
class FaultyPageSource final : public PageSource {
 public:
  /// Created pages also count in `used`, if given.
  explicit FaultyPageSource(PageSource& inner, Level* used = nullptr)
      : inner_(inner), used_(used), page_(inner.page_size().count) {}

  [[nodiscard]] Bytes page_size() const override { return inner_.page_size(); }

  [[nodiscard]] void* reserve(Bytes size) override {
    expect_no_lock("reserve");
    EXPECT_EQ(size.count % page_, 0U) << "addresses come in whole pages";
    {
      const std::lock_guard lock(mutex_);
      if (strikes(refusing_reserve_)) return nullptr;
    }
    void* const address = inner_.reserve(size);
    const std::lock_guard lock(mutex_);
    if (address == nullptr) return nullptr;
    ranges_.emplace(number(address), size);
    reserved_.rise(size.count);
    return address;
  }

  void unreserve(void* address, Bytes size) noexcept override {
    expect_no_lock("unreserve");
    {
      const std::lock_guard lock(mutex_);
      const auto found = ranges_.find(number(address));
      if (found == ranges_.end() || found->second != size) {
        ADD_FAILURE() << "unreserve of what was not reserved: " << address;
        return;
      }
      EXPECT_FALSE(is_mapped(number(address), size.count)) << "unreserve where pages are mapped";
      ranges_.erase(found);
      reserved_.fall(size.count);
    }
    inner_.unreserve(address, size);
  }

  [[nodiscard]] std::size_t create(std::span<Page> pages) override {
    expect_no_lock("create");
    if (before_create) before_create(pages.size());
    std::size_t allowed = 0;
    {
      const std::lock_guard lock(mutex_);
      ++create_calls_;
      if (until(throwing_create_, pages.size()) < pages.size()) {
        throw std::runtime_error("page source: a fault on demand");
      }
      allowed = until(refusing_create_, pages.size());
    }
    const std::size_t made = inner_.create(pages.first(allowed));
    const std::lock_guard lock(mutex_);
    for (const Page page : pages.first(made)) {
      EXPECT_NE(page.id, 0U) << "zero is no page";
      EXPECT_TRUE(pages_.emplace(page.id, 0).second) << "made twice: page " << page.id;
    }
    created_.rise(made);
    if (used_ != nullptr) used_->rise(made * page_);
    return made;
  }

  void destroy(std::span<const Page> pages) noexcept override {
    expect_no_lock("destroy");
    {
      // Before they are inner's again: otherwise a late subtraction could raise our peak.
      const std::lock_guard lock(mutex_);
      for (const Page page : pages) {
        const auto found = pages_.find(page.id);
        if (found == pages_.end()) {
          ADD_FAILURE() << "destroy of what is no page: " << page.id;
          return;
        }
        EXPECT_EQ(found->second, 0U) << "destroy of a page that is mapped: " << page.id;
        pages_.erase(found);
      }
      created_.fall(pages.size());
      if (used_ != nullptr) used_->fall(pages.size() * page_);
    }
    inner_.destroy(pages);
  }

  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override {
    expect_no_lock("map");
    if (before_map) before_map(mappings);
    std::size_t allowed = 0;
    {
      const std::lock_guard lock(mutex_);
      ++map_calls_;
      allowed = until(refusing_map_, mappings.size());
      for (const Mapping& each : mappings.first(allowed)) note_mapped(each);
    }
    const std::size_t done = inner_.map(mappings.first(allowed));
    const std::lock_guard lock(mutex_);
    for (const Mapping& each : mappings.subspan(done, allowed - done)) note_unmapped(each);
    mapped_pages_ += done;
    mapped_.rise(done);
    return done;
  }

  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override {
    expect_no_lock("unmap");
    if (before_unmap) before_unmap(mappings);
    std::size_t allowed = 0;
    {
      const std::lock_guard lock(mutex_);
      ++unmap_calls_;
      allowed = until(refusing_unmap_, mappings.size());
      for (const Mapping& each : mappings.first(allowed)) expect_mapped(each);
    }
    const std::size_t done = inner_.unmap(mappings.first(allowed));
    const std::lock_guard lock(mutex_);
    for (const Mapping& each : mappings.first(done)) note_unmapped(each);
    unmapped_pages_ += done;
    mapped_.fall(done);
    return done;
  }

  void refuse_reserve(Fault fault) { set(refusing_reserve_, fault); }
  void refuse_create(Fault fault) { set(refusing_create_, fault); }
  void throw_create(Fault fault) { set(throwing_create_, fault); }
  void refuse_map(Fault fault) { set(refusing_map_, fault); }
  void refuse_unmap(Fault fault) { set(refusing_unmap_, fault); }

  /// Called without the fake's lock, with the requested number; set before other threads start.
  std::function<void(std::size_t pages)> before_create;
  std::function<void(std::span<const Mapping>)> before_map;
  std::function<void(std::span<const Mapping>)> before_unmap;

  /// Calls `visit` with every other address of the page at `address`.
  void for_each_alias(std::uintptr_t address,
                      const std::function<void(std::uintptr_t)>& visit) const {
    std::vector<std::uintptr_t> others;
    {
      const std::lock_guard lock(mutex_);
      const auto here = mappings_.find(address);
      if (here == mappings_.end()) return;
      const auto page = pages_.find(here->second);
      if (page == pages_.end() || page->second < 2) return;
      for (const auto& [other, id] : mappings_) {
        if (id == here->second && other != address) others.push_back(other);
      }
    }
    for (const std::uintptr_t other : others) visit(other);
  }

  /// Pages that exist, pages that are mapped, bytes of addresses; of these also the peak.
  [[nodiscard]] std::uint64_t created() const { return created_.now(); }
  [[nodiscard]] std::uint64_t mapped() const { return mapped_.now(); }
  [[nodiscard]] Bytes reserved() const { return {reserved_.now()}; }
  [[nodiscard]] Bytes peak_reserved() const { return {reserved_.peak()}; }

  /// Number of calls, those without effect included.
  [[nodiscard]] std::uint64_t create_calls() const { return read(create_calls_); }
  [[nodiscard]] std::uint64_t map_calls() const { return read(map_calls_); }
  [[nodiscard]] std::uint64_t unmap_calls() const { return read(unmap_calls_); }
  /// Pages that were mapped and unmapped so far.
  [[nodiscard]] std::uint64_t mapped_pages() const { return read(mapped_pages_); }
  [[nodiscard]] std::uint64_t unmapped_pages() const { return read(unmapped_pages_); }
  /// Number of failures on demand.
  [[nodiscard]] std::uint64_t struck() const { return read(struck_); }

 private:
  static std::uintptr_t number(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
  }
  static void expect_no_lock(const char* call) {
    EXPECT_EQ(held_lock_ranks(), 0U) << call << " was called while a lock is held";
  }
  /// How many of `count` come before the fault.
  std::size_t until(Fault& fault, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (strikes(fault)) return i;
    }
    return count;
  }
  bool strikes(Fault& fault) {
    const bool struck = fault.strikes();
    struck_ += struck ? 1 : 0;
    return struck;
  }
  void set(Fault& which, Fault fault) {
    const std::lock_guard lock(mutex_);
    which = fault;
  }
  template <typename T>
  [[nodiscard]] T read(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  [[nodiscard]] bool is_mapped(std::uintptr_t address, std::uint64_t bytes) const {
    const auto first = mappings_.lower_bound(address);
    return first != mappings_.end() && first->first < address + bytes;
  }
  [[nodiscard]] bool is_reserved(std::uintptr_t address) const {
    const auto after = ranges_.upper_bound(address);
    return after != ranges_.begin() &&
           address - std::prev(after)->first < std::prev(after)->second.count;
  }
  void note_mapped(const Mapping& each) {
    const std::uintptr_t address = number(each.address);
    EXPECT_EQ(address % page_, 0U) << "a page is mapped at no multiple of its size";
    EXPECT_TRUE(is_reserved(address)) << "map where nothing is reserved: " << each.address;
    EXPECT_TRUE(mappings_.emplace(address, each.page.id).second)
        << "map over a mapping: " << each.address;
    const auto page = pages_.find(each.page.id);
    if (page == pages_.end()) {
      ADD_FAILURE() << "map of what is no page: " << each.page.id;
    } else {
      ++page->second;  // a page may be at several places
    }
  }
  void expect_mapped(const Mapping& each) const {
    const auto found = mappings_.find(number(each.address));
    EXPECT_TRUE(found != mappings_.end() && found->second == each.page.id)
        << "unmap of page " << each.page.id << ", which is not mapped at " << each.address;
  }
  void note_unmapped(const Mapping& each) {
    const auto found = mappings_.find(number(each.address));
    if (found == mappings_.end()) return;  // said already
    if (const auto page = pages_.find(found->second); page != pages_.end()) --page->second;
    mappings_.erase(found);
  }

  PageSource& inner_;
  Level* const used_;
  const std::uint64_t page_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Bytes> ranges_;            ///< reserved
  std::map<std::uintptr_t, std::uint64_t> mappings_;  ///< which page is where
  std::map<std::uint64_t, std::uint64_t> pages_;      ///< number of places of each page
  Level created_;
  Level mapped_;
  Level reserved_;
  std::uint64_t create_calls_ = 0;
  std::uint64_t map_calls_ = 0;
  std::uint64_t unmap_calls_ = 0;
  std::uint64_t mapped_pages_ = 0;
  std::uint64_t unmapped_pages_ = 0;
  std::uint64_t struck_ = 0;
  Fault refusing_reserve_;
  Fault refusing_create_;
  Fault throwing_create_;
  Fault refusing_map_;
  Fault refusing_unmap_;
};

}  // namespace weir::testing
