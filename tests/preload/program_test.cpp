// Programs that are refused before they start, and the reasons.

#include "tools/weir/run/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "elf_bytes.hpp"
#include "support/environment.hpp"
#include "support/message_of.hpp"
#include "tools/weir/run/elf.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weir::testing::elf32_bytes;
using weir::testing::elf_bytes;
using weir::testing::environment_of;
using weir::testing::message_of;
using weir::testing::TemporaryDirectory;
using weir::testing::write_file;

/// An executable file with these contents, in a folder that is the whole PATH.
class ProgramTest : public ::testing::Test {
 protected:
  std::string program(const std::string& name, const std::string& contents) {
    const std::string path = directory_.file(name);
    write_file(path, contents);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  [[nodiscard]] Environment environment() const {
    return environment_of({{"PATH", directory_.file("")}});
  }
  std::string refusal(const std::string& path) {
    return message_of<UsageError>([&] { (void)started(path); });
  }
  /// The program started for `path a b`.
  Started started(const std::string& path) {
    return check_program(path, {path, "a", "b"}, environment());
  }

  TemporaryDirectory directory_;
};

TEST_F(ProgramTest, ANativeDynamicProgramIsFit) {
  EXPECT_NO_THROW((void)started("/proc/self/exe"));
  EXPECT_NO_THROW((void)started(program("dynamic", elf_bytes())));
  EXPECT_NO_THROW((void)started(program("fixed", elf_bytes({.type = ET_EXEC}))));
}

TEST_F(ProgramTest, WhatNothingCanBePreloadedIntoIsRefused) {
  EXPECT_THAT(refusal(program("narrow", elf32_bytes())), HasSubstr("is a 32-bit program"));
  EXPECT_THAT(refusal(program("static", elf_bytes({.type = ET_EXEC, .loader = false}))),
              HasSubstr("is statically linked: nothing can be preloaded into it"));
  EXPECT_THAT(refusal(program("static-pie", elf_bytes({.type = ET_DYN, .loader = false}))),
              HasSubstr("is statically linked"));
  EXPECT_THAT(refusal(program("other", elf_bytes({.machine = EM_S390}))),
              HasSubstr("for another kind of machine"));
  EXPECT_THAT(refusal(program("data", std::string("MZ\0\1\n", 5))),
              HasSubstr("neither an ELF program nor a script"));
}

TEST_F(ProgramTest, AnElfFileThatIsCutOffIsRefusedWhereverItIsCut) {
  const std::string whole = elf_bytes();
  for (std::size_t size = SELFMAG; size < whole.size(); ++size) {
    const std::string message = refusal(program("cut", whole.substr(0, size)));
    EXPECT_THAT(message, HasSubstr("damaged")) << size;
  }
}

TEST_F(ProgramTest, AScriptStandsForItsInterpreter) {
  const std::string interpreter = program("static", elf_bytes({.loader = false}));
  const std::string script = program("script", "#! " + interpreter + " -x\ncode");
  EXPECT_THAT(refusal(script), AllOf(HasSubstr("'" + interpreter + "', which runs the script '" +
                                               script + "', is statically linked")));
  program("good", elf_bytes());
  EXPECT_NO_THROW((void)started(program("script", "#!/usr/bin/env good\ncode")));
  EXPECT_THAT(refusal(program("script", "#!/usr/bin/env static\n")),
              HasSubstr("is statically linked"));
}

TEST_F(ProgramTest, AScriptThatNamesNoInterpreterIsRunByTheShell) {
  for (const char* contents : {"echo hello\n", "", "\n#!/nowhere\n"}) {
    const std::string script = program("script", contents);
    const Started shell = started(script);
    EXPECT_EQ(shell.path, "/bin/sh");
    EXPECT_THAT(shell.words, ElementsAre("/bin/sh", script, "a", "b"));
  }
  const std::string elf = program("elf", elf_bytes());
  EXPECT_EQ(started(elf).path, elf);
  EXPECT_THAT(started(elf).words, ElementsAre(elf, "a", "b"));
}

TEST_F(ProgramTest, AScriptWhoseNameBeginsWithADashIsNoOptionOfTheShell) {
  const std::string folder = std::filesystem::current_path().string();
  std::filesystem::create_directory(directory_.file("-x"));
  program("-x/script", "echo hello\n");
  std::filesystem::current_path(directory_.file(""));
  EXPECT_THAT(started("-x/script").words, ElementsAre("/bin/sh", "./-x/script", "a", "b"));
  std::filesystem::current_path(folder);
}

TEST_F(ProgramTest, EnvRunsAScriptWithoutAnInterpreterAndTheKernelRunsNone) {
  const std::string inner = program("inner", "echo hello\n");
  const std::string by_env = program("by-env", "#!/usr/bin/env inner\n");
  EXPECT_EQ(started(by_env).path, by_env) << "env asks the shell, not weir";
  EXPECT_THAT(refusal(program("by-kernel", "#!" + inner + "\n")),
              AllOf(HasSubstr("'" + inner + "', which runs the script"),
                    HasSubstr("neither an ELF program nor a script that names what runs it")));
}

TEST_F(ProgramTest, AScriptWhoseInterpreterCannotBeRunNamesBoth) {
  const std::string script = program("script", "#!/nowhere/interpreter\n");
  EXPECT_THAT(refusal(script), AllOf(HasSubstr("'/nowhere/interpreter'"), HasSubstr(script)));
  EXPECT_THAT(refusal(program("script", "#!/usr/bin/env nowhere\n")),
              AllOf(HasSubstr("'nowhere'"), HasSubstr("PATH"), HasSubstr(script)));
  EXPECT_THAT(refusal(program("script", "#!\n")), HasSubstr("names no interpreter"));
}

TEST_F(ProgramTest, ScriptsAreFollowedToOneAnotherButNotForEver) {
  const std::string last = program("last", "#!" + program("good", elf_bytes()) + "\n");
  EXPECT_NO_THROW((void)started(program("first", "#!" + last + "\n")));
  const std::string self = directory_.file("self");
  EXPECT_THAT(refusal(program("self", "#!" + self + "\n")),
              HasSubstr("script whose interpreter is a script"));
}

TEST_F(ProgramTest, IsFoundInPathUnlessItHasASlash) {
  const std::string path = program("tool", elf_bytes());
  EXPECT_EQ(find_program("tool", environment()), directory_.file("") + "/tool");
  EXPECT_EQ(find_program(path, environment_of({})), path);
  const Environment two = environment_of({{"PATH", "/nowhere:" + directory_.file("")}});
  EXPECT_EQ(find_program("tool", two), directory_.file("") + "/tool");
}

TEST_F(ProgramTest, WhatIsNotFoundOrCannotBeRunIsRefused) {
  const auto not_found = [&](const std::string& name) {
    return message_of<UsageError>([&] { (void)find_program(name, environment()); });
  };
  EXPECT_THAT(not_found("absent"), AllOf(HasSubstr("'absent'"), HasSubstr("PATH")));
  EXPECT_THAT(not_found("./absent"), HasSubstr("'./absent' cannot be run: No such file"));
  EXPECT_THAT(not_found("/"), HasSubstr("is a folder"));
  EXPECT_THAT(not_found("/dev/null"), HasSubstr("is not a file"));
  EXPECT_THAT(not_found(""), HasSubstr("empty"));
  write_file(directory_.file("plain"), elf_bytes());
  EXPECT_THAT(not_found("plain"), HasSubstr("is not executable"));
  EXPECT_THAT(not_found(directory_.file("plain")), HasSubstr("is not executable"));
}

TEST(Script, FirstLineNamesTheInterpreter) {
  struct Line {
    const char* front;
    const char* name;
    bool in_path;
  };
  for (const Line& line :
       {Line{"#!/bin/sh\nx", "/bin/sh", false}, Line{"#! \t/bin/sh -e\n", "/bin/sh", false},
        Line{"#!/bin/sh", "/bin/sh", false}, Line{"#!/usr/bin/env python3\n", "python3", true},
        Line{"#!/bin/env -S A=1 python3 -u\n", "python3", true},
        Line{"#!/usr/bin/env -i python3\n", "/usr/bin/env", false},
        Line{"#!/usr/bin/env\n", "/usr/bin/env", false},
        Line{"#!/usr/bin/env \n", "/usr/bin/env", false},
        Line{"#!/opt/myenv x\n", "/opt/myenv", false}, Line{"#!\n", "", false},
        Line{"#!", "", false}}) {
    const auto interpreter = interpreter_of(line.front);
    ASSERT_TRUE(interpreter) << line.front;
    EXPECT_EQ(interpreter->name, line.name) << line.front;
    EXPECT_EQ(interpreter->in_path, line.in_path) << line.front;
  }
  for (const char* front : {"", "#", "\177ELF", " #!/bin/sh", "echo"}) {
    EXPECT_FALSE(interpreter_of(front)) << front;
  }
}

TEST(Script, ATextWithoutAnInterpreterIsTheShells) {
  using namespace std::string_view_literals;
  for (const std::string_view front : {""sv, "echo"sv, "# x\n"sv, " #!/bin/sh"sv, "a\n\0"sv}) {
    EXPECT_TRUE(is_shell_script(front)) << front;
  }
  for (const std::string_view front : {"#!/bin/sh\n"sv, "#!"sv, "\177ELF"sv, "a\0\n"sv}) {
    EXPECT_FALSE(is_shell_script(front)) << front;
  }
}

}  // namespace
}  // namespace weir::cli
