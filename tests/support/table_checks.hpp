#pragma once

// What holds of every table for people: it fits the terminal, and its legend names each heading.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tools/program/printable.hpp"

namespace weir::testing {

inline std::vector<std::string> lines_of_text(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Returns the columns of the widest line.
inline std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string& line : lines_of_text(text)) widest = std::max(widest, columns_of(line));
  return widest;
}

/// Returns the headings in the first line that begins with `first`, which two spaces separate.
inline std::vector<std::string> headings_of(const std::string& text, const std::string& first) {
  for (std::string line : lines_of_text(text)) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));  // of a narrow heading
    if (!line.starts_with(first + "  ")) continue;
    std::vector<std::string> headings;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t end = std::min(line.find("  ", at), line.size());
      headings.push_back(line.substr(at, end - at));
      at = std::min(line.find_first_not_of(' ', end), line.size());
    }
    return headings;
  }
  return {};
}

/// Expects that the text explains each heading of the table whose first heading is `first`, as
/// `heading: `. Lines may break anywhere.
inline void expect_legend_of(const std::string& text, const std::string& first) {
  std::string words;
  for (const char letter : text) {
    const bool space = letter == ' ' || letter == '\n';
    if (!space || (!words.empty() && words.back() != ' ')) words += space ? ' ' : letter;
  }
  const std::vector<std::string> headings = headings_of(text, first);
  EXPECT_GE(headings.size(), 2U) << "no table of '" << first << "' in\n" << text;
  for (const std::string& heading : headings) {
    EXPECT_NE(words.find(" " + heading + ": "), std::string::npos)
        << "no legend for '" << heading << "' in\n"
        << text;
  }
}

}  // namespace weir::testing
