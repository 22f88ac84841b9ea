#include "tools/program/command_line/help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "program/command_line/sample_command.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CommandLineHelp, ShowsACommandCompletely) {
  EXPECT_EQ(help_text(sample_command().commands[1], 60),
            "List files.\n"
            "\n"
            "Usage: prog list [FLAGS] FILE...\n"
            "\n"
            "Arguments:\n"
            "  FILE...                   what to list\n"
            "\n"
            "Flags:\n"
            "  -o, --output FILE         where to write (default:\n"
            "                            list.txt)\n"
            "  --all                     hidden ones too\n"
            "  --few                     some\n"
            "  -h, --help                print this help and exit\n"
            "\n"
            "Exit codes: 0: finished; 2: bad input.\n");
}

TEST(CommandLineHelp, ShowsVariablesAndWhatValuesAre) {
  const std::string help = help_text(sample_command().commands[0], 80);
  EXPECT_THAT(help, HasSubstr("Usage: prog run [FLAGS] -- PROGRAM [ARGUMENTS]\n"));
  EXPECT_THAT(help,
              HasSubstr("--budget BYTES|PERCENT    how much memory it may use (PROG_BUDGET)\n"));
  EXPECT_THAT(help, HasSubstr("BYTES is a size such as 6GiB or 512MiB, PERCENT is a share"));
  EXPECT_THAT(help, HasSubstr("More: docs/run.md\n"));
}

TEST(CommandLineHelp, ShowsRequiredWordsInTheUsage) {
  const std::string help = help_text(sample_command().commands[2].commands[0], 80);
  EXPECT_THAT(help, HasSubstr("Usage: prog group merge PID --output FILE [FLAGS]\n"));
}

TEST(CommandLineHelp, ListsCommandsByTheirLastWord) {
  const std::string help = help_text(sample_command(), 80);
  EXPECT_THAT(help, HasSubstr("Usage: prog COMMAND [FLAGS]\n"));
  EXPECT_THAT(help, HasSubstr("\nCommands:\n  run                       run a program\n"));
  EXPECT_THAT(help, HasSubstr("Some things take long.\n"));
  EXPECT_THAT(help, Not(HasSubstr("More:")));
}

TEST(CommandLineHelp, NoLineIsWiderThanAskedFor) {
  CommandText command = sample_command().commands[0];
  command.flags[0].help = std::string(30, 'x') + " and many words more " + std::string(40, 'y');
  for (const std::size_t width : {70U, 80U, 100U}) {
    std::istringstream lines(help_text(command, width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
}

TEST(CommandLineHelp, IsAsWideAsTheOutputWithinLimits) {
  EXPECT_EQ(help_width(std::nullopt), 80U);
  EXPECT_EQ(help_width(0), 80U) << "as some terminals say that they do not know";
  EXPECT_EQ(help_width(1), 50U);
  EXPECT_EQ(help_width(72), 72U);
  EXPECT_EQ(help_width(300), 100U);
}

TEST(CommandLineHelp, WrapsAtSpacesAndKeepsWords) {
  EXPECT_EQ(wrap("one two three", 7, 0, 2), "one two\n  three");
  EXPECT_EQ(wrap("one two", 7, 4, 0), "one\ntwo");
  EXPECT_EQ(wrap("unbreakable word", 5, 0, 0), "unbreakable\nword");
  EXPECT_EQ(wrap("", 5, 0, 0), "");
  EXPECT_EQ(wrap("of a,b,c,d,e,f", 7, 0, 0), "of\na,b,c,\nd,e,f");
}

}  // namespace
}  // namespace weir::testing
