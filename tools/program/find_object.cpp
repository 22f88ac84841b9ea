#include "tools/program/find_object.hpp"

#include <link.h>

#include <atomic>
#include <cstdint>

// Without the struct, the C library is older than 2.35, and so is what this compiler's unwinder
// asks.
#ifdef DLFO_STRUCT_HAS_EH_DBASE

namespace weir {
namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object& found;
};

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(
      address);  // NOLINT(performance-no-int-to-ptr): the loader's numbers
}

/// Returns 1, which ends the walk, if this object has the address.
int look_into(dl_phdr_info* object, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  bool has_address = false;
  std::uintptr_t unwinding = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) unwinding = begin;
    if (part.p_type != PT_LOAD || search.address - begin >= part.p_memsz) continue;
    has_address = true;
    search.found.dlfo_map_start = pointer(begin);
    search.found.dlfo_map_end = pointer(begin + part.p_memsz);
  }
  if (!has_address) return 0;
  search.found.dlfo_eh_frame = unwinding == 0 ? nullptr : pointer(unwinding);
  return 1;
}

using FindObject = int (*)(void*, dl_find_object*);

int find_by_walking(void* address, dl_find_object* found) noexcept {
  return walk_objects(address, *found);
}

// Looked up at the first exception: libweir.so runs nothing before main. Threads that get here
// together find the same.
FindObject their_find_object() noexcept {
  static constinit std::atomic<FindObject> known{nullptr};
  FindObject found = known.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  found = reinterpret_cast<FindObject>(dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35"));
  if (found == nullptr) {
    (void)dlerror();  // the program must not find our error
    found = &find_by_walking;
  }
  known.store(found, std::memory_order_release);
  return found;
}

}  // namespace

int walk_objects(void* address, dl_find_object& found) noexcept {
  found = {};
  Search search{.address = reinterpret_cast<std::uintptr_t>(address), .found = found};
  return dl_iterate_phdr(look_into, &search) == 1 && found.dlfo_eh_frame != nullptr ? 0 : -1;
}

// Hidden: the unwinders of other libraries ask the C library's own.
extern "C" [[gnu::visibility("hidden")]] int weir_find_object(void* address,
                                                              dl_find_object* found) noexcept
    __asm__("_dl_find_object");

int weir_find_object(void* address, dl_find_object* found) noexcept {
  return their_find_object()(address, found);
}

}  // namespace weir

#endif
