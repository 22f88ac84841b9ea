// Functions that the driver exports and the stand-in does not simulate: they return "not
// supported". Includes no CUDA header: the functions accept any arguments.

#include "tests/standin/driver/lookup/rest.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

extern "C" int weir_standin_rest(const char* name);

// Weak, so that simulated functions replace them. The list is made from <cuda.h>.
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
