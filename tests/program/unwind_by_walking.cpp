// A program that contains the unwinder and finds no _dl_find_object, as with a C library
// before 2.35. Throws a thousand times, from two threads. Exits with 0 if all were caught.

#include <link.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

int walks = 0;

int arrived() {
  int count = 0;
  for (int i = 0; i < 500; ++i) {
    try {
      std::vector<int> numbers{2, 1};
      std::sort(numbers.begin(), numbers.end(),
                [](int, int) -> bool { throw std::runtime_error("thrown"); });
    } catch (const std::runtime_error&) {
      ++count;
    }
  }
  return count;
}

}  // namespace

// The linker sends calls of dlvsym and of dl_iterate_phdr here (--wrap).
extern "C" {
using Look = int (*)(dl_phdr_info*, std::size_t, void*);
void* no_dlvsym(void*, const char*, const char*) __asm__("__wrap_dlvsym");
int real_walk(Look look, void* argument) __asm__("__real_dl_iterate_phdr");
int counted_walk(Look look, void* argument) __asm__("__wrap_dl_iterate_phdr");

void* no_dlvsym(void*, const char*, const char*) { return nullptr; }
int counted_walk(Look look, void* argument) {
  ++walks;
  return real_walk(look, argument);
}
}

int main() {
  int all = arrived();
  std::thread second([&all] { all += arrived(); });
  second.join();
  return all == 1000 && walks >= 1000 ? 0 : 1;
}
