// Checks the table against the toolkit's types at compile time.

// So that the toolkit's headers have the types of older versions too.
#define __CUDA_API_VERSION_INTERNAL
#include <cudaTypedefs.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "tools/preload/driver/driver.hpp"

namespace weir::preload {
namespace {

template <std::size_t Size>
struct Text {
  // Not explicit: a template's argument is written as a literal.
  consteval Text(const char (&text)[Size]) { std::copy_n(text, Size, letters); }
  char letters[Size] = {};
};

/// The type of cuGetProcAddress's result for a name at a version, for per-thread default streams.
template <Text Base, int Version>
struct PerThread;
#define PLAIN(base, version)
#define PER_THREAD(base, version, suffix)            \
  template <>                                        \
  struct PerThread<#base, version> {                 \
    using Type = PFN_##base##_v##version##_##suffix; \
  };
#include "typedefs.inc"

// There were no per-thread default streams before 7.0.
#define HOOK(base, since, symbol, action, what)                             \
  static_assert(std::is_same_v<PFN_##base##_v##since, decltype(&::symbol)>, \
                #symbol " takes other arguments");
#define HOOK_STREAM(base, since, symbol, action, what)                                           \
  static_assert(std::is_same_v<PFN_##base##_v##since, decltype(&::symbol)>,                      \
                #symbol " takes other arguments");                                               \
  static_assert(                                                                                 \
      std::is_same_v<PerThread<#base, std::max(since, 7000)>::Type, decltype(&::symbol##_ptsz)>, \
      #symbol "_ptsz takes other arguments");
#define HOOK_PTDS(base, since, symbol, action, what)                                       \
  static_assert(std::is_same_v<PerThread<#base, since>::Type, decltype(&::symbol##_ptds)>, \
                #symbol "_ptds takes other arguments");
#include "tools/preload/driver/hooks.inc"

}  // namespace
}  // namespace weir::preload
