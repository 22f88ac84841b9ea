// The standard library of GCC 12, which goes into the portable weir-gpu and weir and into
// libweir.so, draws random numbers with a function that the C library has only from 2.36 on. With
// it here 2.35 is enough, that of Ubuntu 22.04.

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value)
    std::abort();  // there is no way to say so
  return value;
}
