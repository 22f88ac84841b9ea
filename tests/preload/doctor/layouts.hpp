#pragma once

// Where the program may lie: in a clone's build folder, installed, in a wheel's environment, or
// where no pages are.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/doctor/collect/bounded.hpp"
#include "tools/weir/doctor/collect/collect.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::cli::doctor::testing {

/// The folder of a package, with the pages as `cmake --install` puts them there.
inline std::string installed_folder() {
  static const weir::testing::TemporaryDirectory kFolder;
  static const Bounded kInstalled =
      run_program(CMAKE_PROGRAM,
                  {CMAKE_PROGRAM, "-DCMAKE_INSTALL_PREFIX=" + kFolder.file("usr"),
                   "-DWEIR_SOURCE=" SOURCE_FOLDER, "-DWEIR_SCRATCH=" + kFolder.file("scratch"),
                   "-DWEIR_DOCUMENTS=share/doc/weir", "-DWEIR_DATA=share", "-P",
                   SOURCE_FOLDER "/tools/cmake/install_documents.cmake"},
                  {}, std::chrono::minutes(1));
  EXPECT_EQ(kInstalled.exit_code, 0) << kInstalled.err;
  return kFolder.file("usr");
}

/// Where pages are in each layout; in the last, nowhere.
inline const std::vector<Places>& layouts() {
  static const std::vector<Places> kLayouts{
      collect_places(SOURCE_FOLDER "/build/dev/tools/weir/weir"),
      collect_places(installed_folder() + "/bin/weir"),
      collect_places(installed_folder() + "/lib/python3.11/site-packages/weir/bin/weir"),
      collect_places("/nowhere/bin/weir")};
  return kLayouts;
}

/// Checks that somebody with this layout has what the remedy names.
inline void expect_what_it_names(const std::string& remedy, const Places& places) {
  static constexpr std::array<std::string_view, 8> kSources{
      "docs/", "tools/", "tests/", "bench/", "build/", "trainer/", "allocator/", "scheduler/"};
  namespace fs = std::filesystem;
  std::istringstream words(remedy);
  for (std::string word; words >> word;) {
    word.erase(0, word.find_first_not_of("(\"'"));
    word.erase(word.find_last_not_of(")\"',;:.") + 1);
    EXPECT_TRUE(std::ranges::none_of(kSources, [&](auto begin) { return word.starts_with(begin); }))
        << "only a clone has '" << word << "': " << remedy;
    if (!word.ends_with(".md")) continue;
    EXPECT_EQ(word.starts_with('/'), !places.pages.empty()) << remedy;
    EXPECT_TRUE(fs::exists(word.starts_with('/') ? word : SOURCE_FOLDER "/docs/" + word)) << remedy;
  }
}

}  // namespace weir::cli::doctor::testing
