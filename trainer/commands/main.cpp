// weir-train: reports what ended the program, and sets the exit code.

#include <cstdlib>

#include "kernels/blas/blas.hpp"
#include "tools/program/run_main.hpp"
#include "trainer/commands/command.hpp"

int main(int argc, char** argv) {
  return weir::run_main("weir-train", [&] {
    try {
      return weir::run_program(argc, argv);
    } catch (const weir::BlasMemoryError& error) {
      std::_Exit(weir::report_error("weir-train", error));
    }
  });
}
