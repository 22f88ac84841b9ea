#include "tools/program/run_main.hpp"

#include <cstdio>

#include "allocator/base/error.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir {

int run_main(const char* program, const std::function<int()>& body) {
  hold_standard_streams();
  try {
    return body();
  } catch (const std::exception& error) {
    return report_error(program, error);
  }
}

int report_error(const char* program, const std::exception& error) {
  const bool quotes_user = dynamic_cast<const UsageError*>(&error) != nullptr;
  std::fprintf(stderr, "%s: %s\n", program,
               quotes_user ? printable(error.what(), true).c_str() : error.what());
  return exit_code(error);
}

}  // namespace weir
