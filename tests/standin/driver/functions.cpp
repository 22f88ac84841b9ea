// The functions that the driver exports. Includes no CUDA header: here they accept any arguments.
// Those that the stand-in does not simulate return "not supported".

#include <type_traits>

#include "tests/standin/driver/lookup.hpp"

extern "C" int weir_standin_rest(const char* name);

// The second name is weak, so that a simulated function replaces it. The list is made from
// <cuda.h>.
#define REST(name)                                                          \
  extern "C" int standin_rest_##name() { return weir_standin_rest(#name); } \
  extern "C" __attribute__((weak, alias("standin_rest_" #name))) int name();
#include "standin_driver_rest.inc"
#undef REST

// For the stand-in runtime.
extern "C" int weir_standin_function_of();
extern "C" int weir_standin_refuse_runtime();

namespace weir::standin {
namespace {

template <typename F>
Form form(std::string_view base, int since, bool per_thread, F* function,
          std::type_identity_t<F*> rest) {
  return {base, since, per_thread, function != rest, reinterpret_cast<void*>(function)};
}

}  // namespace

std::span<const Function> functions() {
#define REST(name) {#name, reinterpret_cast<void*>(&(name))},
  static const Function kFunctions[] = {
#include "standin_driver_rest.inc"
  };
#undef REST
  return kFunctions;
}

std::span<const Form> forms() {
#define FORM(base, since, symbol) form(#base, since, false, &(symbol), &standin_rest_##symbol),
#define PER_THREAD_FORM(base, since, symbol) \
  form(#base, since, true, &(symbol), &standin_rest_##symbol),
  static const Form kForms[] = {
      form("weir_standin_function_of", 0, false, &weir_standin_function_of, {}),
      form("weir_standin_refuse_runtime", 0, false, &weir_standin_refuse_runtime, {}),
#include "standin_driver_forms.inc"
  };
#undef FORM
#undef PER_THREAD_FORM
  return kForms;
}

}  // namespace weir::standin
