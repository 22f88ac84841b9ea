#include "tools/program/further_reading.hpp"

#include <gtest/gtest.h>

#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

namespace fs = std::filesystem;

class FurtherReading : public ::testing::Test {
 protected:
  /// Makes an empty file.
  void make(const std::string& name) {
    fs::create_directories(fs::path(directory_.file(name)).parent_path());
    write_file(directory_.file(name), "");
  }
  std::string for_program_in(const std::string& folder,
                             const std::string& command = "prog group merge") {
    fs::create_directories(directory_.file(folder));
    return further_reading({.name = command, .page = "docs/group.md"}, directory_.file(folder));
  }

  const TemporaryDirectory directory_;
};

TEST_F(FurtherReading, NamesWhatIsInstalled) {
  make("share/doc/weir/docs/group.md");
  const std::string page = directory_.file("share/doc/weir/docs/group.md");
  EXPECT_EQ(for_program_in("bin"), page);
  make("share/man/man1/prog-group.1.gz");
  EXPECT_EQ(for_program_in("bin"), "man prog-group, " + page);
  EXPECT_EQ(for_program_in("bin", "prog group"), "man prog-group, " + page);
  EXPECT_EQ(for_program_in("bin", "prog list"), page);
  make("share/man/man1/prog.1");
  EXPECT_EQ(for_program_in("bin", "prog"), "man prog, " + page);
  fs::remove(page);
  EXPECT_EQ(for_program_in("bin", "prog"), "man prog");
}

TEST_F(FurtherReading, FindsTheDataOfAWheel) {
  make("share/doc/weir/docs/group.md");
  EXPECT_EQ(for_program_in("lib/python3/site-packages/weir/bin"),
            directory_.file("share/doc/weir/docs/group.md"));
}

TEST_F(FurtherReading, NamesThePageOfTheSourceTreeThatAProgramWasBuiltIn) {
  make("tools/weir/CMakeLists.txt");
  EXPECT_EQ(for_program_in("build/dev/tools"), "");
  make("docs/group.md");
  EXPECT_EQ(for_program_in("build/dev/tools"), "docs/group.md in the source tree");
}

TEST_F(FurtherReading, NamesNothingThatIsNotThere) {
  make("docs/group.md");  // of some other project: no source tree
  EXPECT_EQ(for_program_in("bin"), "");
  make("tools/weir/CMakeLists.txt");
  EXPECT_EQ(further_reading({.name = "prog"}, directory_.file("bin")), "") << "it has no page";
}

}  // namespace
}  // namespace weir::testing
