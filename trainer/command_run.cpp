// weir-train run: trains once.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "trainer/command.hpp"
#include "trainer/flags.hpp"
#include "trainer/report.hpp"
#include "trainer/table.hpp"

namespace weir {
namespace {

class RunCommand {
 public:
  explicit RunCommand(CLI::App& app)
      : flags_(app), json_(app, "--json", "write the figures to this file") {
    add_policy_flag(flags_);
    add_memory_flags(flags_);
    add_batch_size_flag(flags_);
    add_training_flags(flags_);
  }

  [[nodiscard]] int run(const std::stop_token& stop) const {
    TrainSettings settings = TrainSettings::from_environment();
    flags_.apply(settings);
    settings.validate();
    const std::unique_ptr<OutputFile> json = json_.open();
    std::fprintf(stderr, "%s\n", settings.describe().c_str());
    ProgressBar bar;
    const TrainResult result =
        train(settings, {.stop = stop, .progress = [&](std::uint64_t done, std::uint64_t all) {
                           bar.show("batches submitted", done, all);
                         }});
    bar.clear();
    const int print_error = print(format_run(settings, result));
    if (!result.report.empty()) std::fprintf(stderr, "weir-train: %s\n", result.report.c_str());
    if (json) json->commit(run_json(settings, result));
    require_printed(print_error);
    return exit_code(result.outcome);
  }

 private:
  TrainFlags flags_;
  OutputFlag json_;
};

}  // namespace

Command add_run_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("run", "train once");
  const auto command = std::make_shared<RunCommand>(*app);
  return {app, [command](const std::stop_token& stop) { return command->run(stop); }};
}

}  // namespace weir
