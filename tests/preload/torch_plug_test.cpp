// Which plug fits which PyTorch: its version, and the files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tools/preload/torch/plug_file.hpp"
#include "tools/preload/torch/torch_version.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::preload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using weir::testing::TemporaryDirectory;
using weir::testing::write_file;
namespace fs = std::filesystem;

std::optional<TorchVersion> version_of(const std::string& text) {
  return parse_torch_version("from typing import Optional\n\n__all__ = ['__version__', 'cuda']\n" +
                             text + "\ndebug = False\ncuda: Optional[str] = '13.2'\n");
}

TEST(TorchVersion, IsReadAsTheWheelsHaveIt) {
  struct Row {
    const char* text;
    int major;
    int minor;
    bool is_release;
  };
  for (const Row& row :
       {Row{"2.15.0+cu132", 2, 15, true}, Row{"2.5.1", 2, 5, true},
        Row{"2.9.0a0+git0fabc3b", 2, 9, false}, Row{"2.9.0a0+50eac811a6.nv25.09", 2, 9, false},
        Row{"2.16.0.dev20260101+cu132", 2, 16, false}, Row{"2.10.0rc3", 2, 10, true},
        Row{"2.4.0.post1", 2, 4, true}, Row{"3.0", 3, 0, true}}) {
    const TorchVersion expected{row.major, row.minor, row.is_release, row.text};
    EXPECT_THAT(version_of("__version__ = '" + std::string(row.text) + "'"), Optional(expected));
    EXPECT_THAT(version_of("__version__: str = \"" + std::string(row.text) + "\"\r"),
                Optional(expected));
  }
}

TEST(TorchVersion, IsNotGuessedFromAnythingElse) {
  for (const char* line :
       {"", "__version__ = ''", "__version__ = '2'", "__version__ = '2.'", "__version__ = 2.15",
        "__version__ = '2.15", "__version__ = 'v2.15'", "__version__ = '99999.1'",
        "__version__ = '2.x'", "__version__ == ''", "__version__info = '2.15'",
        " __version__ = '2.15'", "__version__ = '2.15\033[2J'", "__version__ = '-2.15'"}) {
    EXPECT_EQ(version_of(line), std::nullopt) << line;
  }
  EXPECT_EQ(parse_torch_version(""), std::nullopt);
  EXPECT_EQ(version_of("__version__ = '2.15." + std::string(100, '0') + "'"), std::nullopt);
}

TEST(PlugFile, IsNamedForTheVersionAndTheAbi) {
  const auto version = version_of("__version__ = '2.5.1+cu124'");
  ASSERT_TRUE(version);
  EXPECT_EQ(plug_name(*version, CxxAbi::kCxx11), "libweir_torch_2.5.so");
  EXPECT_EQ(plug_name(*version, CxxAbi::kCxx03), "libweir_torch_2.5_cxx03.so");
}

TEST(PlugFile, VersionsOfAFolderAreListedOnceAndInOrder) {
  const TemporaryDirectory folder;
  for (const char* name :
       {"libweir_torch_2.15.so", "libweir_torch_2.5.so", "libweir_torch_2.5_cxx03.so",
        "libweir_torch_2.9.so", "libweir_torch_.so", "libweir_torch_2.so", "libweir_torch_2.x.so",
        "libweir_torch_2.6.so.old", "weir_torch_2.7.so", "libweir.so", "libweir_torch_2.8-.so"}) {
    write_file(folder.file(name), "");
  }
  EXPECT_THAT(versions_of_plugs_in(folder.file("")), ElementsAre("2.5", "2.9", "2.15"));
  EXPECT_THAT(versions_of_plugs_in(folder.file("nowhere")), IsEmpty());
  EXPECT_THAT(versions_of_plugs_in(""), IsEmpty());
}

TEST(PlugFile, WhatTheLoaderMustNotTryIsNamed) {
  const TemporaryDirectory folder;
  const fs::path whole = fs::read_symlink("/proc/self/exe");
  const auto why = [&](const char* name) { return why_unfit(folder.file(name)); };
  EXPECT_THAT(why("none"), Optional(HasSubstr("cannot be read (No such file")));
  fs::create_symlink("loop", folder.file("loop"));
  EXPECT_THAT(why("loop"), Optional(HasSubstr("cannot be read (Too many")));
  EXPECT_THAT(why(""), Optional(std::string("it is a folder")));
  ASSERT_EQ(std::system(("mkfifo " + folder.file("pipe")).c_str()), 0);
  EXPECT_THAT(why("pipe"), Optional(std::string("it is not a file")));
  for (const char* text : {"", "\177EL", "a text"}) {
    write_file(folder.file("text"), text);
    EXPECT_THAT(why("text"), Optional(std::string("it is not a shared library")));
  }
  write_file(folder.file("short"), "\177ELF");
  EXPECT_THAT(why("short"), Optional(std::string("it is cut off")));
}

// A file that was cut off anywhere in what is mapped would end the process by SIGBUS.
TEST(PlugFile, AFileThatWasCutOffIsNoticedWhereverItWasCut) {
  const TemporaryDirectory folder;
  const std::string file = folder.file("library.so");
  fs::copy_file(PLUG_SAMPLE, file);
  EXPECT_EQ(why_unfit(file), std::nullopt);
  const auto size = fs::file_size(file);
  for (const auto part : {1U, 4U, 8U, 16U}) {
    fs::resize_file(file, size / 32 * part);
    EXPECT_THAT(why_unfit(file), Optional(std::string("it is cut off"))) << part << " of 32";
  }
}

}  // namespace
}  // namespace weir::preload
