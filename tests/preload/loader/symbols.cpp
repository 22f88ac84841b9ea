#include "symbols.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <sstream>

namespace weir::preload {
namespace {

/// The output of a command. Its failure fails the test.
std::istringstream output_of(const std::string& command) {
  std::string text;
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run: " << command;
    return {};
  }
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) != 0;) {
    text.append(part.data(), got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return std::istringstream(text);
}

}  // namespace

Names exported_by(const std::string& library) {
  // Lines of a name, a letter for its kind, and its place. Kind A are names of versions.
  auto lines =
      output_of(WEIR_NM " -D --extern-only --defined-only --format=posix '" + library + "'");
  Names names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    char kind = 0;
    if (words >> name >> kind && kind != 'A') names.insert(name.substr(0, name.find('@')));
  }
  return names;
}

Names needed_by(const std::string& library) {
  auto lines = output_of(WEIR_READELF " -dW '" + library + "'");
  Names names;
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find('[');
    if (line.find("(NEEDED)") == std::string::npos || begin == std::string::npos) continue;
    names.insert(line.substr(begin + 1, line.find(']') - begin - 1));
  }
  return names;
}

}  // namespace weir::preload
