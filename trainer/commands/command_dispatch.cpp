// weir-train dispatch: measures what asynchronous dispatch gains, beside the prediction of a simple
// model.

#include <cstdio>
#include <memory>

#include "tools/program/settings_lines.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/commands/flags.hpp"
#include "trainer/dispatch/dispatch.hpp"
#include "trainer/run/settings.hpp"

namespace weir {
namespace {

class DispatchCommand {
 public:
  explicit DispatchCommand(CommandLine& line) : flags_(line), json_(line) {
    using S = DispatchSettings;
    line.add("--wide", wide_, "show all columns, and cut nothing to fit 100 columns");
    flags_.add("--device", &S::device, parse_dispatch_device, Value("cpu"),
               "the cpu, whose closures run on the host (default: cpu)");
    flags_.add(
        "--operations", &S::operations,
        WholeNumber{.least = 2},  // the scheduler keeps every queued operation: some 500 bytes each
        Value("N"), "times that y = x + 1 is computed in a run (default: 1000)");
    flags_.add("--rounds", &S::rounds, WholeNumber{}, Value("N"),
               "rounds of stages and runs, whose medians are printed (default: 15)");
    flags_.add("--elements-large", &S::elements_large, WholeNumber{.most = 100'000'000}, Value("N"),
               "elements of x in the runs with a slower device (default: 131072)");
    flags_.add("--elements-small", &S::elements_small, WholeNumber{.most = 100'000'000}, Value("N"),
               "elements of x in the runs with a slower frontend (default: 1)");
    flags_.add("--frontend", &S::frontend, WholeNumber{}, Value("N"),
               "microseconds that the slow frontend computes before each call (default: 50)");
    flags_.add("--matrix", &S::matrix, WholeNumber{.most = 4096}, Value("N"),
               "rows and columns of the matrix product (default: 1024)");
    line.set_page("docs/dispatch.md");
    line.set_exit_codes({{"0", "finished"},
                         {"1", "the program or the machine failed"},
                         {"2", "bad input"},
                         {"130", "interrupted, and the figures so far are printed"}});
  }

  [[nodiscard]] int run(const std::stop_token& stop) const {
    DispatchSettings settings;
    flags_.apply(settings);
    const std::unique_ptr<OutputFile> json = json_.open();
    std::fputs(settings_lines(settings.lines()).c_str(), stderr);
    ProgressBar bar;
    const DispatchFigures figures = measure_dispatch(
        settings, {.stop = stop,
                   .on_done = [&](const std::string& label, std::uint64_t done, std::uint64_t all) {
                     bar.show(label, done, all);
                   }});
    bar.clear();
    const int print_error =
        json_.replaces_table() ? 0 : print(format_dispatch(settings, figures, wide_));
    if (json) json->commit(dispatch_json(settings, figures));
    require_printed(print_error);
    return exit_code(figures.interrupted ? Outcome::kInterrupted : Outcome::kFinished);
  }

 private:
  bool wide_ = false;
  Flags<DispatchSettings> flags_;
  JsonFlag json_;
};

}  // namespace

Command add_dispatch_command(CommandLine& program) {
  return add_command<DispatchCommand>(
      program, "dispatch",
      "measure y = x + 1 many times, waiting each time and once, beside a model");
}

}  // namespace weir
