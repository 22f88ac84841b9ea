// A program that uses PyTorch's stand-in (libraries/fake_torch.cpp). Does in order:
//
//   open LIBRARY     as `import torch`
//   use              as the first use of CUDA in the library opened last
//   thread           the same in another thread
//   fork             the same in a child, which exits as a program does
//   driver           uses the driver without PyTorch: allocates and frees
//   count            calls PyTorch's function itself, as if it were linked against it
//
// Fails if a message is left for dlerror by any of them.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "use_driver.hpp"

namespace c10::cuda {
__attribute__((weak)) signed char device_count_ensure_non_zero();
}  // namespace c10::cuda

namespace {

void* opened = nullptr;

void use() {
  if (void* const function = dlsym(opened, "loader_use_torch")) {
    reinterpret_cast<void (*)()>(function)();
  }
}

void in_child() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    use();
    std::exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) std::printf("the child failed\n");
}

bool act(const std::string& word, const char* next) {
  if (word == "open") {
    opened = dlopen(next, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) std::printf("not so: %s\n", dlerror());
    return true;
  }
  if (word == "use") use();
  if (word == "thread") std::thread(use).join();
  if (word == "fork") in_child();
  if (word == "driver") (void)use_driver("local", "served");
  if (word == "count" && c10::cuda::device_count_ensure_non_zero != nullptr) {
    std::printf("%d devices\n", c10::cuda::device_count_ensure_non_zero());
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    if (act(arguments[i], i + 1 < count ? arguments[i + 1] : "")) ++i;
    if (const char* const left = dlerror()) {
      std::printf("left for dlerror by %s: %s\n", arguments[i], left);
      return 1;
    }
  }
  return 0;
}
