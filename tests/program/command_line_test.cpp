#include "tools/program/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;

/// A program with three subcommands: one with flags, one with an argument that is required, one
/// that takes a program.
struct Program {
  Program() {
    line.require_command();
    line.add_version("prog 1.2");
    CommandLine& one = line.add_command("one", "the first");
    flag = one.add("--name", name, Value("NAME"), "a name");
    one.add("--all", all, "all of them").exclude(*flag);
    output = one.add("-o,--output", file, Value("FILE"), "a file");
    line.add_command("two", "the second").add("FILE", names, Value("FILE"), "files").require();
    line.add_command("run", "run a program").take_program();
  }
  std::optional<int> parse(std::vector<const char*> words, const char* own = "build/prog") {
    words.insert(words.begin(), own);
    return line.parse("prog", static_cast<int>(words.size()), words.data());
  }
  std::string refused(const std::vector<const char*>& words) {
    return message_of<UsageError>([&] { (void)parse(words); });
  }

  CommandLine line{"show what a program is"};
  std::string name = "nobody";
  std::string file;
  std::vector<std::string> names;
  bool all = false;
  std::optional<Flag> flag;
  std::optional<Flag> output;
};

std::string printed(const std::vector<const char*>& words) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Program().parse(words), 0);
  return ::testing::internal::GetCapturedStdout();
}

TEST(CommandLine, GoesOnWhereNothingIsWrong) {
  Program program;
  EXPECT_EQ(program.parse({"one", "--name", "x"}), std::nullopt);
  EXPECT_EQ(program.name, "x");
  EXPECT_TRUE(program.flag->given());
}

TEST(CommandLine, AProgramInsideAnotherIsNamedAsItIsTyped) {
  Program program;
  for (const auto& [own, name] :
       {std::pair{"bin/outer prog", "outer prog"}, {"a b/prog", "prog"}}) {
    EXPECT_THAT(message_of<UsageError>([&, own = own] { (void)program.parse({"three"}, own); }),
                HasSubstr(std::string("(see ") + name + " --help)"));
  }
}

TEST(CommandLine, AFlagThatIsNotGivenLeavesItsValue) {
  Program program;
  EXPECT_EQ(program.parse({"one", "--all"}), std::nullopt);
  EXPECT_EQ(program.name, "nobody");
  EXPECT_FALSE(program.flag->given());
  EXPECT_TRUE(program.all);
}

TEST(CommandLine, AnArgumentMayHaveSeveralValues) {
  Program program;
  EXPECT_EQ(program.parse({"two", "a", "b"}), std::nullopt);
  EXPECT_EQ(program.names, (std::vector<std::string>{"a", "b"}));
}

TEST(CommandLine, KnowsAFlagByTheNameThatWasTyped) {
  for (const char* typed : {"-o", "--output"}) {
    Program program;
    EXPECT_EQ(program.parse({"one", typed, "x"}), std::nullopt);
    EXPECT_EQ(program.output->typed(), typed);
    EXPECT_EQ(program.file, "x");
  }
  Program joined;
  EXPECT_EQ(joined.parse({"one", "--output=x"}), std::nullopt);
  EXPECT_EQ(joined.output->typed(), "--output");
  Program neither;
  EXPECT_EQ(neither.parse({"one"}), std::nullopt);
  EXPECT_EQ(neither.output->typed(), "--output");
}

TEST(CommandLine, KeepsTheProgramsWordsForTheCommandThatTakesAProgram) {
  Program program;
  EXPECT_EQ(program.parse({"run", "--", "ls", "--name", "--"}), std::nullopt);
  EXPECT_EQ(program.line.program_words(), (std::vector<std::string>{"ls", "--name", "--"}));
  Program after;
  EXPECT_EQ(after.parse({"two", "--", "--all", "--"}), std::nullopt);
  EXPECT_EQ(after.names, (std::vector<std::string>{"--all", "--"})) << "arguments like flags";
}

TEST(CommandLine, ARefusalByTheCommandSaysHowToGetHelp) {
  const auto refused = [](const std::string& text, const std::vector<const char*>& words) {
    Program program;
    EXPECT_EQ(program.parse(words), std::nullopt);
    return message_of<UsageError>(
        [&] { (void)program.line.run([&]() -> int { throw UsageError(text); }); });
  };
  EXPECT_EQ(refused("--name='x' is not allowed: y", {"one"}),
            "--name='x' is not allowed: y (see prog one --help)");
  EXPECT_EQ(refused("FILE: cannot be read", {"two", "a"}),
            "FILE: cannot be read (see prog two --help)");
  EXPECT_EQ(refused("a: cannot be read", {"two", "a"}), "a: cannot be read") << "no flag";
  EXPECT_EQ(Program().line.run([] { return 3; }), 3);
  EXPECT_THROW((void)Program().line.run([]() -> int { throw Error("--name"); }), Error);
}

TEST(CommandLine, PrintsTheHelpOfTheCommandThatIsNamed) {
  EXPECT_TRUE(printed({"--help"}).starts_with("Show what a program is.\n\nUsage: prog COMMAND"));
  const std::string help = printed({"one", "--name", "x", "-h"});
  EXPECT_TRUE(help.starts_with("The first.\n\nUsage: prog one [FLAGS]\n")) << help;
  EXPECT_THAT(help, HasSubstr("  --name NAME               a name (default: nobody)\n"));
  EXPECT_EQ(printed({"--version"}), "prog 1.2\n");
}

TEST(CommandLine, PrintsCompletionsForKnownShells) {
  EXPECT_THAT(printed({"--completion", "bash"}), HasSubstr("complete -F _prog prog"));
  EXPECT_TRUE(printed({"--completion=zsh"}).starts_with("#compdef prog\n"));
  EXPECT_EQ(Program().refused({"--completion", "tcsh"}),
            "--completion='tcsh' is not allowed: bash or zsh (see prog --help)");
}

TEST(CommandLine, ListsTheFlagsInForce) {
  Program program;
  EXPECT_EQ(program.parse({"one", "--output", "x"}), std::nullopt);
  CommandLine other("b");
  std::string text = "1";
  std::string json;
  bool set = false;
  other.add("--seed", text, Value("N"), "a seed");
  other.add("--json", json, Value("FILE"), "figures");
  other.add("--set", set, "a switch");
  const char* const words[] = {"b", "--set", "--json", "y"};
  EXPECT_EQ(other.parse("b", 4, words), std::nullopt);
  const std::vector<SettingLine> lines = other.settings();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].name + lines[0].value + lines[0].source, "seed1default");
  EXPECT_EQ(lines[1].name + lines[1].value + lines[1].source, "set1--set");
}

}  // namespace
}  // namespace weir::testing
