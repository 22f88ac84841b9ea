#pragma once

// Numbers a process's texts, so that records have a fixed size.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// The limits of a table.
struct NameLimits {
  std::uint32_t names = 1U << 17U;
  Bytes bytes = mib(16);
};

/// Thread-safe. Texts stay valid as long as the table.
class NameTable final : public Names {
 public:
  static constexpr std::size_t kLongest = 512;                  ///< most bytes of a text
  static constexpr std::string_view kOthers = "(other names)";  ///< for texts beyond the limits
  static constexpr std::uint32_t kOther = 1;                    ///< the number of kOthers

  explicit NameTable(NameLimits limits = {});

  /// Returns one number for equal texts, from 1. Returns 0 for an empty text, or if memory is
  /// short. Cuts long texts. New texts beyond the limits get kOther.
  [[nodiscard]] std::uint32_t number(std::string_view text) noexcept;
  /// Returns an empty text for an unknown number. Takes no lock.
  [[nodiscard]] std::string_view text(std::uint32_t number) const override;

  /// Returns the table that all recorders of the process share, so that numbers mean the same to
  /// all. A forked child gets a new one, because another thread may have held the lock.
  [[nodiscard]] static NameTable& of_process();
  /// For the fork handler in the child.
  static void leave_to_parent() noexcept;

 private:
  static constexpr std::size_t kBlock = 4096;
  using Block = std::array<std::string_view, kBlock>;

  [[nodiscard]] std::uint32_t add(std::string_view text) WEIR_REQUIRES(mutex_);
  [[nodiscard]] std::string_view keep(std::string_view text) WEIR_REQUIRES(mutex_);

  const NameLimits limits_;
  std::atomic<std::uint32_t> count_{1};         ///< numbers given, and 0
  std::vector<std::unique_ptr<Block>> blocks_;  ///< each is filled up to count_

  Mutex mutex_{LockRank::kTimeline};
  std::unordered_map<std::string_view, std::uint32_t> numbers_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<char[]>> pages_ WEIR_GUARDED_BY(mutex_);  ///< the texts
  std::size_t page_used_ WEIR_GUARDED_BY(mutex_) = 0;
  Bytes bytes_ WEIR_GUARDED_BY(mutex_);
};

/// Caches one thread's recent texts, so that it rarely takes the table's lock. Not thread-safe.
class NameCache {
 public:
  /// Like NameTable::number.
  [[nodiscard]] std::uint32_t name(NameTable& table, std::string_view text) noexcept;
  /// Returns the number of `file:line`. `file` must live as long as the program.
  [[nodiscard]] std::uint32_t site(NameTable& table, const char* file, int line) noexcept;

 private:
  struct NameEntry {
    std::size_t hash = 0;
    std::uint32_t number = 0;
  };
  struct SiteEntry {
    const char* file = nullptr;
    int line = 0;
    std::uint32_t number = 0;
  };
  void use(NameTable& table) noexcept;

  NameTable* table_ = nullptr;
  std::array<NameEntry, 256> names_{};
  std::array<SiteEntry, 128> sites_{};
};

}  // namespace weir::timeline
