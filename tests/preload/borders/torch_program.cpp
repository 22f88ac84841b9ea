// Loads the library as PyTorch does, and catches its allocation's exception with the program's own
// C++ library, which is not the one inside the library.

#include <dlfcn.h>
#include <sys/types.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace {

int fail(const char* what) {
  std::fprintf(stderr, "torch_program: %s\n", what);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(dlerror());
  using Allocate = void* (*)(ssize_t, int, void*);
  const auto allocate = reinterpret_cast<Allocate>(dlsym(library, "weir_torch_alloc"));
  if (allocate == nullptr) return fail(dlerror());
  for (int round = 0; round < 3; ++round) {
    try {
      (void)allocate(4096, 0, nullptr);
      return fail("nothing was thrown");
    } catch (const std::runtime_error& error) {
      if (std::strncmp(error.what(), "CUDA out of memory.", 19) != 0) return fail(error.what());
    }
    if (std::uncaught_exceptions() != 0) return fail("an exception is under way for ever");
  }
  return 0;
}
