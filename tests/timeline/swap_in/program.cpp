// A program under Weir. It takes the driver's functions from the loader, as programs do that are
// not linked with the driver, and knows nothing of Weir except the marks of its batches.
//
//   batches [CUPTI]   ten batches; in the stand-in CUPTI of that path, each of them has a kernel
//   inject LIBRARY [CUPTI]   the same; the driver has loaded LIBRARY into it
//   part FILE         thirty batches, of which it has the middle ten recorded
//   leave             allocates once; main leaves by pthread_exit, before another thread has ended
//   run-out FILE      allocates until memory is out, and looks for FILE then
//   die-of-it FILE    the same, and kills itself if FILE was there
//
// Exits with 3 if everything was correct.

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "timeline/cupti/records.hpp"
#include "timeline/cupti/standin_cupti.hpp"
#include "tools/preload/borders/weir.h"

namespace {

using weir::testing::StandinCupti;

constexpr int kAsItShould = 3;
constexpr int kNot = 1;
constexpr std::size_t kMib = std::size_t{1} << 20U;

template <typename F>
F find(const char* path, const char* name) {
  void* const library = dlopen(path, RTLD_NOW);
  void* const address = library != nullptr ? dlsym(library, name) : nullptr;
  F function = nullptr;
  std::memcpy(&function, &address, sizeof function);
  return function;
}
template <typename F>
F driver(const char* name) {
  return find<F>("libcuda.so.1", name);
}

bool set_up() {
  CUcontext context = nullptr;
  return driver<decltype(&cuInit)>("cuInit")(0) == CUDA_SUCCESS &&
         driver<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0) ==
             CUDA_SUCCESS &&
         driver<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context) == CUDA_SUCCESS;
}
CUresult allocate(CUdeviceptr& address) {
  return driver<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&address, kMib);
}
CUresult free(CUdeviceptr address) { return driver<decltype(&cuMemFree)>("cuMemFree_v2")(address); }

/// CUPTI's record of a kernel that the calling thread launches now.
void launch(StandinCupti& cupti, std::uint32_t correlation) {
  constexpr std::uint64_t kLasts = 1000;
  const auto now =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  for (const std::uint64_t id : cupti.seen().external) {
    (void)cupti.emit(weir::testing::bytes_of(weir::testing::external(correlation, id)));
  }
  (void)cupti.emit(weir::testing::bytes_of(weir::testing::kernel(correlation, now, now + kLasts)));
}

int run_batches(StandinCupti* cupti) {
  constexpr std::uint32_t kBatches = 10;
  for (std::uint32_t i = 1; i <= kBatches; ++i) {
    CUdeviceptr address = 0;
    (void)weir_batch_begin("train");
    if (allocate(address) != CUDA_SUCCESS) return kNot;
    if (cupti != nullptr) launch(*cupti, i);
    if (free(address) != CUDA_SUCCESS) return kNot;
    weir_batch_end();
  }
  if (cupti == nullptr) return kAsItShould;
  for (const std::string& rule : cupti->seen().misuse)
    std::fprintf(stderr, "CUPTI: %s\n", rule.c_str());
  return kAsItShould;
}

/// Ends the process with 0, without freeing anything: a driver may have a thread for that, which
/// would keep the process alive.
int run_and_leave() {
  CUdeviceptr address = 0;
  if (allocate(address) != CUDA_SUCCESS) return kNot;
  constexpr std::chrono::milliseconds kLater{50};
  std::thread([kLater] { std::this_thread::sleep_for(kLater); }).detach();
  pthread_exit(nullptr);
}

int run_part(const char* file) {
  if (run_batches(nullptr) != kAsItShould) return kNot;
  if (weir_timeline_start(file) != 1 || run_batches(nullptr) != kAsItShould) return kNot;
  weir_timeline_stop();
  return run_batches(nullptr);
}

int run_out(const char* file) {
  (void)weir_batch_begin("too large");
  CUresult result = CUDA_SUCCESS;
  for (CUdeviceptr address = 0; result == CUDA_SUCCESS;) result = allocate(address);
  const bool is_there = access(file, R_OK) == 0;
  weir_batch_end();
  return result == CUDA_ERROR_OUT_OF_MEMORY && is_there ? kAsItShould : kNot;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.empty() || !set_up()) return kNot;
  if (words[0] == "leave") return run_and_leave();
  if (words[0] == "part") return run_part(words.at(1).c_str());
  if (words[0] == "run-out") return run_out(words.at(1).c_str());
  if (words[0] == "die-of-it") {
    return run_out(words.at(1).c_str()) == kAsItShould ? raise(SIGKILL) : kNot;
  }
  if (words[0] == "inject") {
    int (*const initialize)() = find<int (*)()>(words.at(1).c_str(), "InitializeInjection");
    if (initialize == nullptr || initialize() != 1) return kNot;
  }
  const std::size_t place = words[0] == "inject" ? 2 : 1;
  if (words.size() <= place) return run_batches(nullptr);
  auto* const cupti = find<StandinCupti* (*)()>(words[place].c_str(), "weir_standin_cupti")();
  return run_batches(cupti);
}
