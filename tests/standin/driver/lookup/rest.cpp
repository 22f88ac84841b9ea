// What the driver exports and the stand-in does not imitate: it says so. No header of CUDA here:
// the functions take whatever they are called with.

#include "tests/standin/driver/lookup/rest.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

extern "C" int weir_standin_rest(const char* name);

// Weak, so that the functions which are imitated take their place. The list is made of <cuda.h>.
#define REST(name) \
  extern "C" __attribute__((weak)) int name() { return weir_standin_rest(#name); }
#include "standin_driver_rest.inc"
#undef REST

namespace weir::standin {
namespace {

struct Named {
  std::string_view name;
  void* function;
};

#define REST(name) Named{#name, reinterpret_cast<void*>(&(name))},
const Named kNamed[] = {
#include "standin_driver_rest.inc"
};
#undef REST

}  // namespace

void* rest_function(const char* name) {
  const auto* found = std::find_if(std::begin(kNamed), std::end(kNamed),
                                   [=](const Named& named) { return named.name == name; });
  return found == std::end(kNamed) ? nullptr : found->function;
}

}  // namespace weir::standin
