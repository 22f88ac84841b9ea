// A driver of look-ups alone: every function of <cudaTypedefs.h>, each version and form as a
// separate function. LOADER_DRIVER_VERSION sets its version, 12040 for 12.4. It records the
// look-ups in the file named by LOADER_LOOK_UPS.

#include "table_driver.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#undef cuGetProcAddress

namespace {

int driver_version() {
  const char* const text = std::getenv("LOADER_DRIVER_VERSION");
  return text != nullptr ? std::atoi(text) : CUDA_VERSION;
}

void write_down(const char* base, int version, cuuint64_t flags) {
  const char* const path = std::getenv("LOADER_LOOK_UPS");
  std::FILE* const file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%s %d %llu\n", base, version, static_cast<unsigned long long>(flags));
  std::fclose(file);
}

CUresult look_up(const char* base, void** function, int version, cuuint64_t flags) {
  if (base == nullptr || *base == '\0' || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  write_down(base, version, flags);
  *function = nullptr;
  if (version > driver_version()) return CUDA_ERROR_INVALID_VALUE;
  const TableForm* const form = weir_table_answer(base, version, flags);
  if (form != nullptr) *function = form->function;
  return CUDA_SUCCESS;
}

/// The body of every function, with as many parameters as any that works here. It suffices for a
/// runtime to look up all that it ever calls.
CUresult called(const char* base, void* first, void* second, int third, cuuint64_t fourth) {
  if (std::strcmp(base, "cuGetProcAddress") == 0) {
    return look_up(static_cast<const char*>(first), static_cast<void**>(second), third, fourth);
  }
  if (std::strcmp(base, "cuInit") == 0) return CUDA_SUCCESS;
  if (std::strcmp(base, "cuDriverGetVersion") != 0) return CUDA_ERROR_NOT_SUPPORTED;
  *static_cast<int*>(first) = driver_version();
  return CUDA_SUCCESS;
}

#define FUNCTION(name, base)                                               \
  CUresult name(void* first, void* second, int third, cuuint64_t fourth) { \
    return called(#base, first, second, third, fourth);                    \
  }
#define PLAIN(base, version) FUNCTION(base##_##version, base)
#define PER_THREAD(base, version, suffix) FUNCTION(base##_##version##_##suffix, base)
#include "typedefs.inc"
#undef PLAIN
#undef PER_THREAD

const TableForm kForms[] = {
#define PLAIN(base, version) {#base, version, false, reinterpret_cast<void*>(&base##_##version)},
#define PER_THREAD(base, version, suffix) \
  {#base, version, true, reinterpret_cast<void*>(&base##_##version##_##suffix)},
#include "typedefs.inc"
#undef PLAIN
#undef PER_THREAD
};

}  // namespace

extern "C" {

const TableForm* weir_table_forms(std::size_t* count) {
  *count = std::size(kForms);
  return kForms;
}

const TableForm* weir_table_answer(const char* base, int version, cuuint64_t flags) {
  const TableForm* best = nullptr;
  if (version > driver_version()) return nullptr;
  for (const TableForm& form : kForms) {
    if (std::strcmp(form.base, base) != 0 || form.version > version) continue;
    if (form.per_thread && flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) continue;
    // At the same version, prefers the form for per-thread default streams.
    const bool newer = best == nullptr || form.version > best->version ||
                       (form.version == best->version && form.per_thread);
    if (newer) best = &form;
  }
  return best;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return look_up(symbol, function, version, flags);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* /*result*/) {
  return look_up(symbol, function, version, flags);
}

}  // extern "C"
