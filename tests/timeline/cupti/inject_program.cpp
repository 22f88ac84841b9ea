// A program into which CUDA would load libweir_timeline.so: LIBRARY [STAND-IN CUPTI]. Exits with 3.

#include <dlfcn.h>

#include <chrono>
#include <cstring>

#include "timeline/cupti/records.hpp"
#include "timeline/cupti/standin_cupti.hpp"

namespace {

template <typename F>
F find(const char* path, const char* name) {
  void* const library = dlopen(path, RTLD_NOW);
  void* const address = library != nullptr ? dlsym(library, name) : nullptr;
  F function = nullptr;
  std::memcpy(&function, &address, sizeof function);
  return function;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 1;
  int (*const initialize)() = find<int (*)()>(arguments[1], "InitializeInjection");
  if (initialize == nullptr || initialize() != 1 || initialize() != 1) return 1;
  if (count > 2) {
    auto* const cupti =
        find<weir::testing::StandinCupti* (*)()>(arguments[2], "weir_standin_cupti")();
    const auto now =
        static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    for (std::uint32_t i = 0; i < 100; ++i) {
      static_cast<void>(cupti->emit(weir::testing::bytes_of(
          weir::testing::kernel(i + 1, now + i * 100, now + i * 100 + 50))));
    }
  }
  return 3;
}
