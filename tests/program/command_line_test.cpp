#include "tools/program/command_line.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"

namespace weir::testing {
namespace {

/// A program with two subcommands, one of which has a flag that is required.
struct Program {
  Program() {
    line.require_command();
    CommandLine& one = line.add_command("one", "the first");
    flag = one.add("--name", name, "a name");
    one.add("--all", all, "all of them").exclude(*flag);
    line.add_command("two", "the second").add("FILE", names, "files").require();
  }
  std::optional<int> parse(std::vector<const char*> words,
                           const std::function<std::string()>& extras_hint = {}) {
    words.insert(words.begin(), "prog");
    return line.parse("prog", static_cast<int>(words.size()), words.data(), extras_hint);
  }
  std::string refused(const std::vector<const char*>& words,
                      const std::function<std::string()>& extras_hint = {}) {
    return message_of<UsageError>([&] { (void)parse(words, extras_hint); });
  }

  CommandLine line{"A program."};
  std::string name = "nobody";
  std::vector<std::string> names;
  bool all = false;
  std::optional<Flag> flag;
};

TEST(CommandLine, GoesOnWhereNothingIsWrong) {
  Program program;
  EXPECT_EQ(program.parse({"one", "--name", "x"}), std::nullopt);
  EXPECT_EQ(program.name, "x");
  EXPECT_TRUE(program.flag->given());
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

TEST(CommandLine, RefusesFlagsThatExcludeEachOther) {
  EXPECT_EQ(Program().refused({"one", "--name", "x", "--all"}),
            "--name excludes --all (see prog --help)");
}

TEST(CommandLine, HelpShowsDefaults) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Program().parse({"one", "--help"}), 0);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("--name TEXT=nobody"), std::string::npos);
}

TEST(CommandLine, PrintsHelpAndIsDone) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Program().parse({"--help"}), 0);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("one"), std::string::npos);
}

TEST(CommandLine, NamesTheSubcommandsWhereNoneOrAWrongOneIsGiven) {
  EXPECT_EQ(Program().refused({}), "A subcommand is required: one or two");
  EXPECT_EQ(Program().refused({"three"}), "'three' is not known: one or two");
}

TEST(CommandLine, RefersToTheHelpOfTheSubcommandThatLacksSomething) {
  EXPECT_EQ(Program().refused({"two"}), "FILE is required (see prog two --help)");
}

TEST(CommandLine, RefersToTheHelpWhereAFlagIsNotKnown) {
  const std::string message = Program().refused({"one", "--nonsense"});
  EXPECT_NE(message.find("--nonsense"), std::string::npos);
  EXPECT_TRUE(message.ends_with(" (see prog --help)")) << message;
}

TEST(CommandLine, SaysOfSuperfluousWordsWhatTheProgramKnowsBetter) {
  const std::string message = Program().refused({"one", "word"}, [] { return " (hint)"; });
  EXPECT_TRUE(message.ends_with("word (hint)")) << message;
}

TEST(CommandLine, RefusesAnEmptyValue) {
  const std::string message = Program().refused({"one", "--name", ""});
  EXPECT_NE(message.find("--name"), std::string::npos) << message;
  EXPECT_NE(message.find("a value, or the flag left out"), std::string::npos) << message;
}

}  // namespace
}  // namespace weir::testing
