#include <gtest/gtest.h>

#include "program/command_line/sample_command.hpp"
#include "tools/program/command_line/reading.hpp"

namespace weir::testing {
namespace {

std::string fault(const std::vector<std::string>& words) {
  const CommandText program = sample_command();
  return find_fault(program, read_words(program, words)).value_or("none");
}

TEST(CommandLineFault, FindsNoneWhereThereIsNone) {
  EXPECT_EQ(fault({"run", "--budget", "80%", "--", "program"}), "none");
  EXPECT_EQ(fault({"list", "a", "b", "-o", "c", "--all"}), "none");
  EXPECT_EQ(fault({"group", "merge", "--output=c", "1"}), "none");
  EXPECT_EQ(fault({"list", "--", "--budget"}), "none") << "an argument that looks like a flag";
  EXPECT_EQ(fault({"list", "-"}), "none");
}

TEST(CommandLineFault, NamesTheFlagThatIsNotKnownAndTheNearest) {
  EXPECT_EQ(fault({"--wings"}), "--wings is not a flag of prog (see prog --help)");
  EXPECT_EQ(fault({"run", "--budgt", "3"}),
            "--budgt is not a flag of prog run: did you mean --budget? (see prog run --help)");
  EXPECT_EQ(fault({"group", "merge", "--wings=2"}),
            "--wings is not a flag of prog group merge (see prog group merge --help)");
  EXPECT_EQ(fault({"list", "-x"}), "-x is not a flag of prog list (see prog list --help)");
}

TEST(CommandLineFault, SaysOfWhichCommandAFlagIs) {
  EXPECT_EQ(fault({"--budget", "3", "run"}),
            "--budget is not a flag of prog, but of prog run (see prog run --help)");
  EXPECT_EQ(fault({"run", "--version"}),
            "--version is not a flag of prog run, but of prog (see prog --help)");
}

TEST(CommandLineFault, AFlagBeforeItsCommandIsOfTheOneThatIsNamed) {
  EXPECT_EQ(
      fault({"--output", "x", "group", "merge", "1"}),
      "--output is not a flag of prog, but of prog group merge (see prog group merge --help)");
  EXPECT_EQ(fault({"--output", "x"}),
            "--output is not a flag of prog, but of some of its commands: write it after the "
            "command's name (see prog --help)");
}

TEST(CommandLineFault, OneDashIsTakenForTwo) {
  EXPECT_EQ(fault({"list", "-all"}),
            "-all is not a flag of prog list: did you mean --all? (see prog list --help)");
  EXPECT_EQ(fault({"run", "-budget=3"}),
            "-budget is not a flag of prog run: did you mean --budget? (see prog run --help)");
}

TEST(CommandLineFault, NamesWordsThatAreNoCommandAtAnyDepth) {
  EXPECT_EQ(fault({"fly"}), "'fly' is not known: run, list or group (see prog --help)");
  EXPECT_EQ(fault({"lits"}), "'lits' is not known: did you mean list? (see prog --help)");
  EXPECT_EQ(fault({"group", "merg"}),
            "'merg' is not known: did you mean merge? (see prog group --help)");
  EXPECT_EQ(fault({"group"}), "a subcommand is required: merge (see prog group --help)");
}

TEST(CommandLineFault, SaysWhatACommandTakesInsteadOfAWord) {
  EXPECT_EQ(fault({"run", "train.py"}),
            "'train.py' was not expected: the program comes after --: prog run [FLAGS] -- PROGRAM "
            "[ARGUMENTS] (see prog run --help)");
  EXPECT_EQ(fault({"group", "merge", "1", "2", "-o", "x"}),
            "'2' was not expected: prog group merge takes only PID (see prog group merge --help)");
  EXPECT_EQ(fault({"group", "merge", "1", "-o", "x", "--", "ls"}),
            "'ls' was not expected: prog group merge takes only PID (see prog group merge --help)");
  EXPECT_EQ(fault({"--"}), fault({}));
}

TEST(CommandLineFault, NamesTheFlagWithoutAValueAsTyped) {
  EXPECT_EQ(fault({"run", "--budget"}),
            "--budget needs a value: BYTES|PERCENT (see prog run --help)");
  EXPECT_EQ(fault({"list", "a", "-o"}), "-o needs a value: FILE (see prog list --help)");
  EXPECT_EQ(fault({"run", "--budget", "--policy", "early"}),
            "--budget needs a value before --policy: BYTES|PERCENT (see prog run --help)");
  EXPECT_EQ(fault({"list", "a", "-o", "--few"}),
            "-o needs a value before --few: FILE (see prog list --help)");
  EXPECT_EQ(fault({"list", "--output", "-o"}),
            "--output needs a value before -o: FILE (see prog list --help)");
  EXPECT_EQ(fault({"list", "--output", "--"}),
            "--output needs a value before --: FILE (see prog list --help)");
  EXPECT_EQ(fault({"list", "a", "-o", "-"}), "none") << "standard output";
  EXPECT_EQ(fault({"list", "a", "--all=1"}), "--all takes no value (see prog list --help)");
}

TEST(CommandLineFault, NamesFlagsThatMayNotStandTogetherInTheOrderTyped) {
  EXPECT_EQ(fault({"list", "a", "--few", "--all"}),
            "--few and --all exclude each other: give one of them (see prog list --help)");
  EXPECT_EQ(fault({"list", "a", "-o", "x", "--output", "y"}),
            "--output is given twice: give it once (see prog list --help)");
}

TEST(CommandLineFault, NamesWhatIsRequired) {
  EXPECT_EQ(fault({"list"}), "FILE is required (see prog list --help)");
  EXPECT_EQ(fault({"group", "merge", "1"}),
            "--output is required: FILE (see prog group merge --help)");
}

TEST(CommandLineFault, NamesTheProgramThatIsMissing) {
  const std::string want =
      "the program to run is missing: prog run [FLAGS] -- PROGRAM [ARGUMENTS] (see prog run "
      "--help)";
  EXPECT_EQ(fault({"run", "--budget", "80%"}), want);
  EXPECT_EQ(fault({"run", "--"}), want);
  EXPECT_EQ(fault({"run", "--", "program", "--wings", "--"}), "none") << "the program's own words";
}

TEST(CommandLineFault, NamesAValueThatIsEmpty) {
  EXPECT_EQ(fault({"list", "a", "-o", ""}),
            "-o='' is not allowed: a value, or the flag left out (see prog list --help)");
  EXPECT_EQ(fault({"list", "a", "--output="}),
            "--output='' is not allowed: a value, or the flag left out (see prog list --help)");
  EXPECT_EQ(fault({"list", "a", ""}), "FILE='' is not allowed: a value (see prog list --help)");
}

TEST(CommandLineFault, WordsThatOtherParsersTakeForTheirOwnAreWords) {
  EXPECT_EQ(fault({"list", "[a,b]", "++", "%%"}), "none");
  EXPECT_EQ(fault({"group", "merge", "-o", "x", "1", "++"}),
            "'++' was not expected: prog group merge takes only PID (see prog group merge --help)");
}

TEST(CommandLineFault, ARefusalOfAFlagOrAnArgumentSaysHowToGetHelp) {
  const CommandText list = sample_command().commands[1];
  const std::string help = " (see prog list --help)";
  for (const std::string refusal :
       {"--output='x' is not allowed: y", "-o needs --all", "--all, --few and -o: give one of them",
        "FILE: cannot be read"}) {
    EXPECT_EQ(with_help(list, refusal), refusal + help);
    EXPECT_EQ(with_help(list, refusal + help), refusal + help) << "once";
  }
  for (const std::string refusal :
       {"PROG_OUTPUT='x' is not allowed: y", "--budget is of another command", "--allowed",
        "-: cannot be read", "FILES", ""}) {
    EXPECT_EQ(with_help(list, refusal), refusal);
  }
}

TEST(CommandLineFault, GuessesOnlyWhatIsNear) {
  const std::vector<std::string> names{"--budget", "--batches", "--lr"};
  EXPECT_EQ(nearest("--bugdet", names), "--budget") << "two letters swapped";
  EXPECT_EQ(nearest("--batchs", names), "--batches");
  EXPECT_EQ(nearest("--lx", names), "") << "another flag is as likely";
  EXPECT_EQ(nearest("--frobnicate", names), "");
}

}  // namespace
}  // namespace weir::testing
