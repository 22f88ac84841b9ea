#pragma once

// Shares of their own for each test, and processes that use them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <string>

#include "allocator/share/share.hpp"
#include "support/forked.hpp"
#include "support/print.hpp"

namespace weir::testing {

inline constexpr Bytes kBudget = mib(64);
inline constexpr Bytes kFloor = mib(16);

/// Removes the file of a share that no other test has.
class OwnShare {
 public:
  OwnShare() {
    static std::atomic<int> last{0};
    id.name = "test-" + std::to_string(getpid()) + "-" + std::to_string(++last);
    id.owner.id = geteuid();
  }
  ~OwnShare() { unlink(id.path().c_str()); }
  OwnShare(const OwnShare&) = delete;
  OwnShare& operator=(const OwnShare&) = delete;

  [[nodiscard]] ShareOptions options(Bytes budget, Bytes floor) const {
    return {.id = id, .budget = budget, .floor = floor, .patience = {}};
  }

  ShareId id;
};

/// A descriptor of its own to a share's file, to write nonsense.
class Raw {
 public:
  explicit Raw(const ShareId& id) : descriptor_(open(id.path().c_str(), O_RDWR | O_CLOEXEC)) {
    EXPECT_GE(descriptor_, 0);
  }
  ~Raw() { close(descriptor_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  void write(std::size_t offset, const void* bytes, std::size_t size) const {
    EXPECT_EQ(pwrite(descriptor_, bytes, size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
  }
  void write_slot(std::size_t index, const ShareRecord& record) const {
    write(offsetof(ShareLayout, slots) + index * sizeof record, &record, sizeof record);
  }
  void write_header(const ShareHeader& header) const { write(0, &header, sizeof header); }
  void cut(off_t size) const { EXPECT_EQ(ftruncate(descriptor_, size), 0); }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

using Child = Forked;

/// A pipe: one process tells another that it has come to a place.
class Signal {
 public:
  Signal() { EXPECT_EQ(pipe(ends_), 0); }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void tell() const noexcept { (void)!write(ends_[1], "x", 1); }
  void await() const noexcept {
    char byte = 0;
    while (read(ends_[0], &byte, 1) < 0) continue;
  }

 private:
  int ends_[2]{};
};

/// Memory that children see too.
template <typename T>
class Common {
 public:
  Common()
      : value_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0)) T) {}
  ~Common() { munmap(value_, sizeof(T)); }
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;
  T& operator*() const noexcept { return *value_; }

 private:
  T* value_;
};

/// Looks at a share from outside: at one moment.
class Sampler {
 public:
  Sampler(const ShareId& id, Bytes budget) : file_(ShareFile::open(id, budget)) {}
  /// Returns the slots at one moment, or nothing while another has the lock.
  /// Calls `meanwhile` with them while nobody can raise a lease.
  template <typename Meanwhile>
  [[nodiscard]] std::optional<ShareSlots> look(const Meanwhile& meanwhile) {
    if (!file_.lock()) return std::nullopt;
    ShareSlots slots = file_.read();
    meanwhile(slots);
    file_.unlock();
    return slots;
  }
  [[nodiscard]] std::optional<ShareSlots> look() {
    return look([](const ShareSlots& /*slots*/) {});
  }
  /// Returns the leases' sum, also of slots that are not known.
  [[nodiscard]] static Bytes sum(const ShareSlots& slots) {
    Bytes sum;
    for (const ShareSlots::Used& used : slots.used) sum += used.slot ? used.slot->lease : Bytes{};
    return sum;
  }

 private:
  ShareFile file_;
};

}  // namespace weir::testing
