#include "tools/program/command_line.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"

namespace weir::testing {
namespace {

/// A program with two subcommands, one of which has a flag that is required.
struct Program {
  Program() {
    app.require_subcommand(1);
    app.fallthrough(false);
    app.add_subcommand("one")->add_option("--name", name);
    app.add_subcommand("two")->add_option("FILE", name)->required();
  }
  std::optional<int> parse(std::vector<const char*> words,
                           const std::function<std::string()>& extras_hint = {}) {
    words.insert(words.begin(), "prog");
    return parse_command_line(app, "prog", static_cast<int>(words.size()), words.data(),
                              extras_hint);
  }
  std::string refused(const std::vector<const char*>& words,
                      const std::function<std::string()>& extras_hint = {}) {
    return message_of<UsageError>([&] { (void)parse(words, extras_hint); });
  }

  CLI::App app;
  std::string name;
};

TEST(CommandLine, GoesOnWhereNothingIsWrong) {
  Program program;
  EXPECT_EQ(program.parse({"one", "--name", "x"}), std::nullopt);
  EXPECT_EQ(program.name, "x");
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
