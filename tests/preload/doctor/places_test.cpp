// A remedy names only pages and files that exist on the machine that it is for.

#include "tools/weir/doctor/checks/places.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "layouts.hpp"

namespace weir::cli::doctor::testing {
namespace {

namespace fs = std::filesystem;

TEST(DoctorPlaces, PagesAreFoundInACloneAPackageAndAnEnvironment) {
  EXPECT_EQ(layouts()[0].pages, SOURCE_FOLDER "/docs");
  EXPECT_EQ(layouts()[1].pages, installed_folder() + "/share/doc/weir/docs");
  EXPECT_EQ(layouts()[2].pages, layouts()[1].pages);
  EXPECT_EQ(layouts()[3].pages, "");
}

TEST(DoctorPlaces, PagesOfAnotherProjectAreNotOurs) {
  const weir::testing::TemporaryDirectory other;
  fs::create_directories(other.file("docs"));
  weir::testing::write_file(other.file("docs/doctor.md"), "another project's");
  EXPECT_EQ(collect_places(other.file("venv/bin/weir")).pages, "");
}

TEST(DoctorPlaces, APageIsNamedByItsPathOrInTheSource) {
  EXPECT_EQ(page({.pages = "/usr/share/doc/weir/docs"}, "environment.md"),
            "/usr/share/doc/weir/docs/environment.md");
  EXPECT_EQ(page({}, "environment.md"), "the page environment.md in the docs of Weir's source");
}

TEST(DoctorPlaces, ThePageOfThePlugHasTheSectionThatTheRemedyNames) {
  for (const Places& places : layouts()) {
    const std::string remedy = build_a_plug(places);
    const std::size_t begin = remedy.find('"') + 1;
    const std::string section = remedy.substr(begin, remedy.find('"', begin) - begin);
    const std::string folder = places.pages.empty() ? SOURCE_FOLDER "/docs" : places.pages;
    EXPECT_THAT(weir::testing::read_file(folder + "/packages.md"),
                ::testing::HasSubstr("\n## " + section + "\n"));
  }
}

/// The cases of the other tests may leave out a remedy.
TEST(DoctorPlaces, NoOtherCheckWritesAPathOfTheClone) {
  for (const auto& file : fs::directory_iterator(SOURCE_FOLDER "/tools/weir/doctor/checks")) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#') || line.find("//") != std::string::npos) continue;
      for (const char* folder : {"docs/", "tools/", "tests/"}) {
        EXPECT_EQ(line.find(folder), std::string::npos) << file.path() << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace weir::cli::doctor::testing
