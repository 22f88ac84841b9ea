// The standard library of GCC 12, which is linked into the portable weir-gpu and weir and into
// libweir.so, draws random numbers with a function that the C library has only since 2.36. This
// definition lets 2.35 suffice, that of Ubuntu 22.04.

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value)
    std::abort();  // the function cannot report failure
  return value;
}
