#include <cstdio>

#include "use_driver.hpp"

int main(int count, char** arguments) {
  if (count == 3) return use_driver(arguments[1], arguments[2]);
  std::printf("driver_program HOW served|passed\n");
  return 2;
}
