// cuGetProcAddress: which function answers to a name at a version and with a default stream.

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

/// The first version at which <cudaTypedefs.h> has a function of that name; 0 where it has none.
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

/// Of the functions that are not imitated, by their exact name or the latest version of it.
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
  // What came after this driver is no name to it.
  if (first_version(name) > driver_version) return kUnknown;
  // A form for per-thread default streams goes before the other one of the same entry. Where the
  // version is too old for it, the other one is the answer.
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
      call.uncounted = true;  // every runtime begins with this, and no tool counts its own calls
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

#undef cuGetProcAddress  // which the toolkit makes the second version's name

extern "C" {

using namespace weir::standin;

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return look_up(symbol, function, version, flags, status);
}

// Before 12.0: no status, and what is not found is an error.
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = look_up(symbol, function, version, flags, nullptr);
  if (result != CUDA_SUCCESS) return result;
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

/// What the functions of rest.cpp do.
int weir_standin_rest(const char* name) {
  return api(name, Needs::kNothing, [](Call& /*call*/) { return CUDA_ERROR_NOT_SUPPORTED; });
}

}  // extern "C"
