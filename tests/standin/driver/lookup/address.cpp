// cuGetProcAddress: finds the function for a name, a version and a default stream.

#include <algorithm>
#include <climits>
#include <string>
#include <string_view>

#include "tests/standin/driver/driver.hpp"
#include "tests/standin/driver/lookup/entries.hpp"
#include "tests/standin/driver/lookup/rest.hpp"

namespace weir::standin {
namespace {

constexpr CUdriverProcAddressQueryResult kFound = CU_GET_PROC_ADDRESS_SUCCESS;
constexpr CUdriverProcAddressQueryResult kUnknown = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
constexpr CUdriverProcAddressQueryResult kTooNew = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;

/// The first version at which <cudaTypedefs.h> has a function of that name; 0 if it has none.
int first_version(std::string_view base) {
  int first = INT_MAX;
#define PLAIN(name, version) \
  if (base == #name) first = std::min(first, version);
#define PER_THREAD(name, version, suffix)
#include "typedefs.inc"
#undef PLAIN
#undef PER_THREAD
  return first == INT_MAX ? 0 : first;
}

/// Finds a function without a simulation, by its exact name or the latest version of it.
void* find_rest(const std::string& name) {
  for (const char* version : {"_v4", "_v3", "_v2", ""}) {
    if (void* function = rest_function((name + version).c_str()); function != nullptr) {
      return function;
    }
  }
  return nullptr;
}

CUdriverProcAddressQueryResult find(const std::string& name, int version, bool per_thread,
                                    int driver_version, void** function) {
  *function = nullptr;
  // Functions that came after this driver are unknown to it.
  if (first_version(name) > driver_version) return kUnknown;
  // A form for per-thread default streams precedes the other form of its entry. If the version is
  // too old for it, the other form is the result.
  int newest = 0;
  bool known = false;
  const auto offer = [&](int since, void* form) {
    if (form == nullptr || since > version || (*function != nullptr && since < newest)) return;
    newest = since;
    *function = form;
  };
  for (const Entry& entry : entries()) {
    if (entry.name != name) continue;
    known = true;
    offer(entry.since, entry.function);
    if (per_thread) offer(entry.per_thread_since, entry.per_thread);
  }
  if (*function != nullptr) return kFound;
  if (known) return kTooNew;
  *function = find_rest(name);
  return *function == nullptr ? kUnknown : kFound;
}

CUresult look_up(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  return api("cuGetProcAddress", Needs::kNothing, [&](Call& call) {
    if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (*symbol == '\0') {
      call.uncounted = true;  // every runtime begins with this call, and no tool counts it
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (version > call.driver.version || flags > 2) return CUDA_ERROR_INVALID_VALUE;
    const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const CUdriverProcAddressQueryResult result =
        find(symbol, version, per_thread, call.driver.version, function);
    if (status != nullptr) *status = result;
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace weir::standin

#undef cuGetProcAddress  // the toolkit defines it as the second version's name

extern "C" {

using namespace weir::standin;

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return look_up(symbol, function, version, flags, status);
}

// The form before 12.0: it has no status, and returns an error for an unknown name.
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = look_up(symbol, function, version, flags, nullptr);
  if (result != CUDA_SUCCESS) return result;
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

/// Implements the functions of rest.cpp.
int weir_standin_rest(const char* name) {
  return api(name, Needs::kNothing, [](Call& /*call*/) { return CUDA_ERROR_NOT_SUPPORTED; });
}

}  // extern "C"
