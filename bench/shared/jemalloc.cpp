#include "bench/shared/jemalloc.hpp"

#include <dlfcn.h>
#include <jemalloc/jemalloc.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace weir::bench {
namespace {

/// Looks up jemalloc's symbol, even if others define the name, too.
template <typename Function>
Function symbol(const char* name) {
  // Already linked; dlopen only returns its handle.
  static void* const kLibrary = [] {
    Dl_info info{};
    void* address = reinterpret_cast<void*>(&mallctl);  // only jemalloc defines this name
    return dladdr(address, &info) != 0 ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  }();
  void* address = kLibrary != nullptr ? dlsym(kLibrary, name) : nullptr;
  if (address == nullptr) throw std::runtime_error(std::string("jemalloc has no ") + name);
  return reinterpret_cast<Function>(address);
}

void check(int status, const char* what) {
  if (status != 0) throw std::runtime_error(std::string("jemalloc refuses ") + what);
}

}  // namespace

void* (*const Jemalloc::kMalloc)(std::size_t) = symbol<void* (*)(std::size_t)>("malloc");
void (*const Jemalloc::kFree)(void*) = symbol<void (*)(void*)>("free");

bool Jemalloc::is_apart() {
  return reinterpret_cast<void*>(kMalloc) != dlsym(RTLD_DEFAULT, "malloc");
}

Jemalloc::Arena::Arena() {
  std::size_t size = sizeof arena_;
  check(mallctl("arenas.create", &arena_, &size, nullptr, 0), "arenas.create");
}

Jemalloc::Arena::~Arena() {
  const std::string name = "arena." + std::to_string(arena_) + ".destroy";
  (void)mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
}

void Jemalloc::Arena::enter() {
  std::size_t size = sizeof before_;
  check(mallctl("thread.arena", &before_, &size, &arena_, sizeof arena_), "thread.arena");
}

void Jemalloc::Arena::leave() {
  // The thread's cache of this arena must not outlive the arena.
  check(mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0), "thread.tcache.flush");
  check(mallctl("thread.arena", nullptr, nullptr, &before_, sizeof before_), "thread.arena");
}

}  // namespace weir::bench
