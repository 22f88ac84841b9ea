#include "tools/program/run_main.hpp"

#include <cstdio>
#include <new>
#include <string>
#include <system_error>

#include "allocator/base/error.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir {
namespace {

/// Returns the line for people. The standard library's own texts for a lack of memory or of threads
/// do not say what is missing.
std::string text_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "out of host memory: the program needs more than the machine, or `ulimit -v`, allows";
  }
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return "no thread can be started (" + system->code().message() +
           "): raise `ulimit -v` or `ulimit -u`";
  }
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return printable(error.what(), true);
  return error.what();
}

}  // namespace

int run_main(const char* program, const std::function<int()>& body) {
  hold_standard_streams();
  try {
    if (const auto columns = terminal_columns()) fit_reports_to(*columns);
    return body();
  } catch (const std::exception& error) {
    return report_error(program, error);
  }
}

int report_error(const char* program, const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", program, text_of(error).c_str());
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return no_memory ? exit_code(OutOfMemory("")) : exit_code(error);
}

}  // namespace weir
