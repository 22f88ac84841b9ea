// make_digits DIR: writes the tests' data set of digits, for trying `weir-train run --data DIR`.

#include <cstdio>
#include <exception>

#include "digits.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_digits DIR\n", stderr);
    return 2;
  }
  try {
    weir::testing::write_data_set(argv[1], *weir::testing::digit_set());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_digits: '%s' cannot be written: %s\n", argv[1], error.what());
    return 1;
  }
}
