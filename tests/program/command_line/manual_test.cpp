#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/command_line/sample_command.hpp"
#include "tools/program/command_line/help.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CommandLineManual, HasAPageForTheProgramAndEachOfItsCommands) {
  std::vector<std::string> files;
  for (const ManualPage& page : manual_pages(sample_command(), "/doc")) files.push_back(page.file);
  EXPECT_THAT(files, ::testing::ElementsAre("prog.1", "prog-run.1", "prog-list.1", "prog-group.1"));
}

TEST(CommandLineManual, APageHasTheSectionsThatPeopleExpect) {
  const std::string text = manual_pages(sample_command(), "/doc").at(1).text;
  EXPECT_TRUE(text.starts_with(".TH PROG\\-RUN 1 \"\" \"prog 1.2\" \"User Commands\"\n")) << text;
  std::size_t place = 0;
  for (const char* section :
       {".SH NAME\nprog\\-run \\- run a program\n",
        ".SH SYNOPSIS\n\\fBprog run\\fR [\\fIFLAGS\\fR] \\fB\\-\\-\\fR "
        "\\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n",
        ".SH DESCRIPTION\nRun a program.\n",
        ".SH OPTIONS\n.TP\n\\fB\\-\\-budget\\fR \\fIBYTES\\fR|\\fIPERCENT\\fR\n"
        "how much memory it may use (PROG_BUDGET)\n",
        ".SH EXIT STATUS\n.TP\n\\fBthe program's own\\fR\nIt ran.\n", ".SH ENVIRONMENT\n",
        "\\fBPROG_BUDGET\\fR\n",
        ".SH SEE ALSO\n\\fBprog\\fR(1),\n\\fBprog\\-list\\fR(1),\n"
        "\\fBprog\\-group\\fR(1)\n.PP\n\\fI/doc/docs/run.md\\fR\n"}) {
    const std::size_t found = text.find(section, place);
    ASSERT_NE(found, std::string::npos) << section << "\nis not after " << place << " in\n" << text;
    place = found;
  }
}

TEST(CommandLineManual, SubcommandsOfACommandAreOnItsPage) {
  const std::string text = manual_pages(sample_command(), "/doc").at(3).text;
  EXPECT_THAT(text, HasSubstr(".SS prog group merge\n"));
  EXPECT_THAT(text, HasSubstr("\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\nthe result\n"));
  EXPECT_THAT(text, Not(HasSubstr(".SH ENVIRONMENT")));
}

TEST(CommandLineManual, NoTextIsReadAsACommandOfTheLanguage) {
  CommandText program = sample_command();
  program.footer = ".so /etc/passwd \\n";
  program.commands.clear();
  EXPECT_THAT(manual_pages(program, "/doc").at(0).text,
              HasSubstr(".PP\n\\&.so /etc/passwd \\en\n"));
}

}  // namespace
}  // namespace weir::testing
