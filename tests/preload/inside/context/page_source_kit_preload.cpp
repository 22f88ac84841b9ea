// The swap-in's pages, for the conformance suite. A program is set up once, so ctest runs each test
// as a separate process.

#include <stdexcept>
#include <string>

#include "support/mapped_cuda.hpp"
#include "support/sanitized.hpp"
#include "tests/allocator/memory/page_source_kit.hpp"
#include "tests/standin/standin.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::testing {
namespace {

using preload::Arena;
using preload::Process;

void check(CUresult code) {
  if (code != CUDA_SUCCESS) throw std::runtime_error("the driver returned " + std::to_string(code));
}

/// A program with a context on the first device, and a budget of `capacity`.
Arena& begin_program(Bytes capacity) {
  if (Process::get_if_any() != nullptr) throw std::runtime_error("not a process of its own");
  setenv("WEIR_BUDGET", (std::to_string(capacity.count) + "B").c_str(), 1);
  weir_standin_reset();
  CUcontext context = nullptr;
  check(cuInit(0));
  check(cuDevicePrimaryCtxRetain(&context, 0));
  check(cuCtxSetCurrent(context));
  return *Process::get()->contexts().current();
}

class SwapInPages final : public PagedUpstream {
 public:
  explicit SwapInPages(Bytes capacity) : arena_(begin_program(capacity)) {}
  [[nodiscard]] Upstream& upstream() override { return arena_.upstream(); }
  [[nodiscard]] Bytes used() const override { return arena_.account().used(); }
  [[nodiscard]] bool write(void* to, unsigned char value, std::size_t bytes) override {
    if (!is_mapped(&cuPointerGetAttributes, to)) return false;
    check(cuMemsetD8(reinterpret_cast<CUdeviceptr>(to), value, bytes));
    check(cuCtxSynchronize());
    return true;
  }
  [[nodiscard]] std::vector<unsigned char> read(void* from, std::size_t bytes) override {
    if (!is_mapped(&cuPointerGetAttributes, from)) return {};
    std::vector<unsigned char> there(bytes);
    check(cuMemcpyDtoH(there.data(), reinterpret_cast<CUdeviceptr>(from), bytes));
    return there;
  }

 private:
  Arena& arena_;
};

}  // namespace

std::vector<PageKind> page_kinds() {
  const auto make = [](Bytes capacity) -> std::unique_ptr<PagedUpstream> {
    return std::make_unique<SwapInPages>(capacity);
  };
  return {{.name = "swap_in",
           .make = make,
           .many = 100,
           .rounds = 30,
           .huge = WEIR_TEST_SANITIZED != 0 ? gib(64) : gib(16 * 1024),
           .reserve_call = "cuMemAddressReserve"}};
}

std::vector<PageKind> kinds_without_pages() { return {}; }

}  // namespace weir::testing
