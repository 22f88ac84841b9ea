#pragma once

// A command line in words, for the tests of what is made of it.

#include "tools/program/command_line/command_text.hpp"

namespace weir::testing {

/// `prog`, with the commands `run`, which takes a program, `list`, and `group` with `group merge`.
inline CommandText sample_command() {
  const FlagText help{.names = {"-h", "--help"}, .help = "print this help and exit"};
  const std::vector<ExitCode> codes{{"0", "finished"}, {"2", "bad input"}};
  CommandText run{.name = "prog run",
                  .about = "run a program",
                  .page = "docs/run.md",
                  .program = true,
                  .exit_codes = {{"the program's own", "it ran"}}};
  run.flags = {{.names = {"--budget"},
                .value = Value("BYTES|PERCENT"),
                .help = "how much memory it may use",
                .variable = "PROG_BUDGET"},
               {.names = {"--policy"}, .value = Value("early|late"), .help = "when it waits"},
               help};
  CommandText list{.name = "prog list", .about = "list files", .exit_codes = codes};
  list.flags = {{.names = {"FILE"},
                 .value = Value("FILE"),
                 .help = "what to list",
                 .required = true,
                 .several = true},
                {.names = {"-o", "--output"},
                 .value = Value("FILE"),
                 .help = "where to write",
                 .default_value = "list.txt"},
                {.names = {"--all"}, .help = "hidden ones too", .excludes = {"--few"}},
                {.names = {"--few"}, .help = "some", .excludes = {"--all"}},
                help};
  CommandText merge{.name = "prog group merge", .about = "merge groups", .exit_codes = codes};
  merge.flags = {
      {.names = {"PID"}, .value = Value("PID"), .help = "a process", .required = true},
      {.names = {"-o", "--output"}, .value = Value("FILE"), .help = "the result", .required = true},
      help};
  CommandText group{
      .name = "prog group", .about = "work on groups", .choose = true, .exit_codes = codes};
  group.flags = {help};
  group.commands = {merge};
  CommandText prog{.name = "prog",
                   .about = "do things",
                   .footer = "Some things take long.",
                   .version = "prog 1.2",
                   .choose = true,
                   .exit_codes = codes};
  prog.flags = {{.names = {"--version"}, .help = "print the version and exit"}, help};
  prog.commands = {run, list, group};
  return prog;
}

}  // namespace weir::testing
