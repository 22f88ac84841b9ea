#include "tools/program/resident_memory.hpp"

#include <unistd.h>

#include <cstdio>

namespace weir {

Bytes resident_memory() noexcept {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return {};
  unsigned long all = 0;
  unsigned long resident = 0;  // in pages, proc(5)
  const int read = std::fscanf(file, "%lu %lu", &all, &resident);
  (void)std::fclose(file);
  return read == 2 ? Bytes{resident * static_cast<unsigned long>(sysconf(_SC_PAGESIZE))} : Bytes{};
}

}  // namespace weir
