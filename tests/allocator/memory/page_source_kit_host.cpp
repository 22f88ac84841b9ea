#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "allocator/memory/page_source_kit.hpp"
#include "support/sanitized.hpp"
#include "support/touchable.hpp"

namespace weir::testing {
namespace {

template <typename T>
class HostPages final : public PagedUpstream {
 public:
  explicit HostPages(Bytes capacity) : upstream_(capacity) {}
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

template <typename T>
std::unique_ptr<PagedUpstream> make(Bytes capacity) {
  return std::make_unique<HostPages<T>>(capacity);
}

}  // namespace

std::vector<PageKind> page_kinds() {
  // The thread sanitizer has shadows only for an address space of a fixed size, and ends the
  // program beyond it.
  const Bytes huge = WEIR_TEST_SANITIZED != 0 ? gib(64) : gib(16 * 1024);
  const std::size_t many = WEIR_TEST_SANITIZED != 0 ? 500 : 4000;
  return {{"host", make<HostUpstream>, true, many, 300, huge},
          {"mapped", make<MappedUpstream>, true, many, 300, huge},
          {"simulated", make<SimulatedUpstream>, false, 100'000, 300, gib(16 * 1024)}};
}

std::vector<PageKind> kinds_without_pages() { return {}; }

}  // namespace weir::testing
