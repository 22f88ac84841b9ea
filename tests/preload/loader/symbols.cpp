#include "symbols.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "support/child_process.hpp"

namespace weir::preload {
namespace {

/// The output of a program. Its failure fails the test.
std::istringstream output_of(const std::string& program, const weir::testing::Words& words) {
  const auto end = weir::testing::ChildProcess(words, {.program = program}).wait();
  EXPECT_EQ(end.exit_code, 0) << program << ": " << end.err;
  return std::istringstream(end.out);
}

// Lines of a name, a letter for its kind, and its place. Kind A are names of versions.
Names names_in(std::istringstream lines) {
  Names names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    char kind = 0;
    if (words >> name >> kind && kind != 'A') names.insert(name.substr(0, name.find('@')));
  }
  return names;
}

}  // namespace

Names exported_by(const std::string& library) {
  return names_in(
      output_of(WEIR_NM, {"-D", "--extern-only", "--defined-only", "--format=posix", library}));
}

Names defined_in(const std::string& library) {
  return names_in(output_of(WEIR_NM, {"--defined-only", "--format=posix", library}));
}

Names needed_by(const std::string& library) {
  auto lines = output_of(WEIR_READELF, {"-dW", library});
  Names names;
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find('[');
    if (line.find("(NEEDED)") == std::string::npos || begin == std::string::npos) continue;
    names.insert(line.substr(begin + 1, line.find(']') - begin - 1));
  }
  return names;
}

}  // namespace weir::preload
