// cuGetProcAddress: finds the function for a name, a version and a default stream.

#include "tests/standin/driver/lookup.hpp"

#include <algorithm>
#include <string>

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {
namespace {

constexpr CUdriverProcAddressQueryResult kFound = CU_GET_PROC_ADDRESS_SUCCESS;
constexpr CUdriverProcAddressQueryResult kUnknown = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
constexpr CUdriverProcAddressQueryResult kTooNew = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;

/// Finds a function without a simulation, by its exact name or the latest version of it.
void* find_rest(const std::string& name) {
  for (const char* version : {"_v4", "_v3", "_v2", ""}) {
    const auto found = std::ranges::find(functions(), name + version, &Function::name);
    if (found != functions().end()) return found->address;
  }
  return nullptr;
}

CUdriverProcAddressQueryResult find(const std::string& name, int version, bool per_thread,
                                    int driver_version, void** function) {
  *function = nullptr;
  int first = 0;  // at which there is a function of that name
  int newest = -1;
  bool known = false;
  for (const Form& form : forms()) {
    if (form.base != name) continue;
    if (!form.per_thread) first = form.since;
    if (!form.simulated) continue;
    known = true;
    // If the version is too old for the form per thread, the other form is the result.
    if (form.since > version || form.since < newest || (form.per_thread && !per_thread)) continue;
    newest = form.since;
    *function = form.function;
  }
  if (first > driver_version) {  // it came after this driver, which does not know it
    *function = nullptr;
    return kUnknown;
  }
  if (known) return *function != nullptr ? kFound : kTooNew;
  *function = find_rest(name);
  return *function != nullptr ? kFound : kUnknown;
}

CUresult look_up(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  return api("cuGetProcAddress", Needs::kNothing, [&](Call& call) {
    require(symbol != nullptr && function != nullptr);
    call.uncounted = *symbol == '\0';  // every runtime begins with this call, and no tool counts it
    require(!call.uncounted && version <= call.driver.version && flags <= 2);
    const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const CUdriverProcAddressQueryResult result =
        find(symbol, version, per_thread, call.driver.version, function);
    if (status != nullptr) *status = result;
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

/// Implements the functions of functions.cpp.
int weir_standin_rest(const char* name) {
  return api(name, Needs::kNothing, [](Call& /*call*/) { return CUDA_ERROR_NOT_SUPPORTED; });
}

}  // extern "C"
