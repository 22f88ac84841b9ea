#pragma once

// What the suites of page sources, and of pools over upstreams, need of each kind. A program links
// one kit: the host's, or the GPU's, which runs on the stand-in driver and on a real one.

#include <cstddef>
#include <cstring>
#include <memory>
#include <ostream>
#include <vector>

#include "allocator/memory/upstream.hpp"
#include "support/touchable.hpp"

namespace weir::testing {

/// An upstream with pages, except for kinds_without_pages, and a way to access its memory.
class PagedUpstream {
 public:
  PagedUpstream() = default;
  PagedUpstream(const PagedUpstream&) = delete;
  PagedUpstream& operator=(const PagedUpstream&) = delete;
  virtual ~PagedUpstream() = default;

  [[nodiscard]] virtual Upstream& upstream() = 0;
  [[nodiscard]] virtual Bytes used() const = 0;
  /// Sets `bytes` bytes from `to` on. Returns false, with none set, if they cannot be accessed.
  [[nodiscard]] virtual bool write(void* to, unsigned char value, std::size_t bytes) = 0;
  /// The bytes from `from` on; none if they cannot be accessed.
  [[nodiscard]] virtual std::vector<unsigned char> read(void* from, std::size_t bytes) = 0;
};

/// An upstream of host memory, which is accessible without a call.
template <typename T>
class HostMemory final : public PagedUpstream {
 public:
  template <typename... Arguments>
  explicit HostMemory(Arguments... arguments) : upstream_(arguments...) {}
  [[nodiscard]] Upstream& upstream() override { return upstream_; }
  [[nodiscard]] Bytes used() const override { return upstream_.used(); }
  [[nodiscard]] bool write(void* to, unsigned char value, std::size_t bytes) override {
    if (!is_touchable(to)) return false;
    std::memset(to, value, bytes);
    return true;
  }
  [[nodiscard]] std::vector<unsigned char> read(void* from, std::size_t bytes) override {
    if (!is_touchable(from)) return {};
    std::vector<unsigned char> there(bytes);
    std::memcpy(there.data(), from, bytes);
    return there;
  }

 private:
  T upstream_;
};

struct PageKind {
  const char* name;
  std::unique_ptr<PagedUpstream> (*make)(Bytes capacity);
  bool has_memory = true;  ///< false: addresses and numbers only, without access
  std::size_t many = 0;    ///< pages that a test may create without filling the machine
  int rounds = 0;  ///< of threads that create and destroy pages: new ones may cost their bytes
  Bytes huge;      ///< addresses that may well be refused
  const char* reserve_call = nullptr;  ///< driver call that refuses what no machine has
};

inline std::ostream& operator<<(std::ostream& out, const PageKind& kind) {
  return out << kind.name;
}

/// Those of this program.
[[nodiscard]] std::vector<PageKind> page_kinds();
/// Upstreams of this program that give only whole allocations.
[[nodiscard]] std::vector<PageKind> kinds_without_pages();

}  // namespace weir::testing
