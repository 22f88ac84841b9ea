#include "allocator/memory/page_source_kit.hpp"
#include "support/sanitized.hpp"

namespace weir::testing {
namespace {

template <typename T>
std::unique_ptr<PagedUpstream> make(Bytes capacity) {
  return std::make_unique<HostMemory<T>>(capacity);
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
