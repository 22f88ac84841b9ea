// weir-train: reports what ended the program, and sets the exit code.

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "trainer/commands/program.hpp"

int main(int argc, char** argv) {
  try {
    return weir::run_program(argc, argv);
  } catch (const weir::BlasMemoryError& error) {
    std::fprintf(stderr, "weir-train: %s\n", error.what());
    std::_Exit(weir::exit_code(error));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir-train: %s\n", error.what());
    return weir::exit_code(error);
  }
}
