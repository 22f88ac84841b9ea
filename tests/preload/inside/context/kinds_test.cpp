// The table of kinds of memory, and the page that shows it.

#include "tools/preload/context/kinds.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace weir::preload::testing {
namespace {

std::string line_of(const KindRow& row) {
  std::string line(128, '\0');
  const std::string sizing(to_string(row.sizing));
  line.resize(static_cast<std::size_t>(std::snprintf(line.data(), line.size(), "%-40s %-14s %s",
                                                     std::string(row.what).c_str(), sizing.c_str(),
                                                     row.counts ? "yes" : "no")));
  return line;
}

TEST(KindsInside, AreTheTableOfThePage) {
  std::ifstream file(WEIR_TEST_SWAP_IN_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::string table;
  for (const KindRow& row : kKindRows) table += line_of(row) + "\n";
  EXPECT_NE(page.find("in the budget\n" + table + "```"), std::string::npos)
      << "docs/swap-in.md should have\n"
      << table;
}

}  // namespace
}  // namespace weir::preload::testing
