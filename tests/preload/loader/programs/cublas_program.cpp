// Opens a cuBLAS, with the runtime inside it, and starts it; exit code 77 if there is none. Prints
// the result of the start: on the stand-in driver it fails.

#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  void* const cublas = count == 2 ? dlopen(arguments[1], RTLD_NOW) : nullptr;
  if (cublas == nullptr) {
    std::printf("no cuBLAS here: %s\n", count == 2 ? dlerror() : "none named");
    return 77;
  }
  auto* const create = reinterpret_cast<int (*)(void**)>(dlsym(cublas, "cublasCreate_v2"));
  void* handle = nullptr;
  std::printf("cublasCreate: %d\n", create != nullptr ? create(&handle) : -1);
  return create != nullptr ? 0 : 1;
}
