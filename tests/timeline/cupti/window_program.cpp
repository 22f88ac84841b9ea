// A program whose recording begins with its second batch, in which it ends: STAND-IN CUPTI. The
// environment sets what is recorded where. Exits with 3.

#include <dlfcn.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "timeline/cupti/records.hpp"
#include "timeline/cupti/standin_cupti.hpp"
#include "tools/timeline/begin.hpp"

namespace weir::testing {
namespace {

StandinCupti* open_standin(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  void* const address = library != nullptr ? dlsym(library, "weir_standin_cupti") : nullptr;
  if (address == nullptr) return nullptr;
  StandinCupti* (*get)() = nullptr;
  std::memcpy(&get, &address, sizeof get);
  return get();
}

/// The recorder opens it, some time after the batch began.
StandinCupti* wait_for_records(const char* path) {
  using namespace std::chrono_literals;
  for (;;) {
    StandinCupti* const cupti = open_standin(path);
    if (cupti != nullptr &&
        cupti->seen().enabled.contains(StandinCupti::Kind::kExternalCorrelation)) {
      return cupti;
    }
    std::this_thread::sleep_for(5ms);
  }
}

int run(const char* path) {
  const auto settings = timeline::TimelineSettings::from_environment();
  if (timeline::record_program(settings, {.gpu = true}) == nullptr) return 1;
  for (const std::uint32_t batch : {1U, 2U}) {
    if (open_standin(path) != nullptr) return 1;
    timeline_batches()->note_batch(batch);
  }
  StandinCupti* const cupti = wait_for_records(path);
  const auto now =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return cupti->emit(bytes_of(kernel(1, now, now + 50))) ? 3 : 1;
}

}  // namespace
}  // namespace weir::testing

int main(int count, char** arguments) { return count == 2 ? weir::testing::run(arguments[1]) : 1; }
