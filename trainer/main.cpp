// weir-train: trains once, or compares the policies. Tables go to standard output; settings,
// progress and diagnostics to standard error. Exit codes: allocator/error.hpp.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "allocator/error.hpp"
#include "allocator/log.hpp"
#include "allocator/version.hpp"
#include "trainer/compare.hpp"
#include "trainer/interrupt.hpp"
#include "trainer/output_file.hpp"
#include "trainer/report.hpp"
#include "trainer/table.hpp"
#include "trainer/train.hpp"

namespace weir {
namespace {

constexpr int kInterrupted = 130;

/// Flags whose values are checked like those of environment variables, and win over them. They are
/// gathered first and applied to the settings of the subcommand that was chosen.
class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  /// `find(settings)` is the setting that the flag is for.
  template <typename Find, typename Parse>
  void add(const char* name, Find find, Parse parse, const char* help) {
    auto text = std::make_shared<std::string>();
    CLI::Option* option = app_.add_option(name, *text, help);
    apply_.push_back([option, text, name, find, parse](CompareSettings& settings) {
      if (option->count() != 0) find(settings) = {parse(name, std::string_view(*text)), name};
    });
  }
  void apply(CompareSettings& settings) const {
    for (const auto& one : apply_) one(settings);
  }

 private:
  CLI::App& app_;
  std::vector<std::function<void(CompareSettings&)>> apply_;
};

void add_common(Flags& flags) {
  using S = CompareSettings;
  flags.add(
      "--device", [](S & s) -> auto& { return s.train.device; }, parse_device, "cpu");
  flags.add(
      "--device-memory", [](S & s) -> auto& { return s.train.device_memory; }, parse_device_memory,
      "what the cpu device is given, such as 2GiB (default: half of the machine's)");
  flags.add(
      "--budget", [](S & s) -> auto& { return s.train.pool.budget; }, parse_budget,
      "96MiB, or 80% of the device's memory (WEIR_BUDGET)");
  flags.add(
      "--pool", [](S & s) -> auto& { return s.train.pool.kind; }, parse_pool_kind,
      "round, naive or unpooled (WEIR_POOL)");
  flags.add(
      "--pool-page-size", [](S & s) -> auto& { return s.train.pool.page; }, parse_page,
      "smallest unit of a pool in bytes (WEIR_POOL_PAGE_SIZE)");
  flags.add(
      "--pool-linear-cutoff", [](S & s) -> auto& { return s.train.pool.cutoff; }, parse_cutoff,
      "log2 of where round's powers of two end, 20 to 34 (WEIR_POOL_LINEAR_CUTOFF)");
  flags.add(
      "--pool-large-round-size", [](S & s) -> auto& { return s.train.pool.large_round; },
      parse_large_round,
      "naive rounds results above it to multiples of it (WEIR_POOL_LARGE_ROUND_SIZE)");
  flags.add(
      "--run-ahead", [](S & s) -> auto& { return s.train.policy.run_ahead; }, parse_run_ahead,
      "auto, a number of batches, a time such as 20ms, or off "
      "(WEIR_RUN_AHEAD)");
  flags.add(
      "--batches", [](S & s) -> auto& { return s.train.batches; }, parse_count,
      "batches to train on");
  flags.add(
      "--batch-size", [](S & s) -> auto& { return s.train.batch_size; }, parse_count,
      "rows of a batch");
  flags.add(
      "--lr", [](S & s) -> auto& { return s.train.learning_rate; }, parse_rate, "learning rate");
  flags.add(
      "--momentum", [](S & s) -> auto& { return s.train.momentum; }, parse_momentum,
      "0 is plain SGD");
  flags.add(
      "--seed", [](S & s) -> auto& { return s.train.seed; }, parse_seed,
      "of the weights and the data");
}

CLI::Option* add_json(CLI::App& app) {
  return app.add_option("--json", "write the figures to this file")->expected(1);
}
std::unique_ptr<OutputFile> open_json(const CLI::Option& option) {
  if (option.count() == 0) return nullptr;
  return std::make_unique<OutputFile>("--json", option.as<std::string>());
}

/// To standard output now, before anything else can fail; zero, or what went wrong.
int print(const std::string& text) {
  errno = 0;
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : errno;
}

/// Last of all, so that figures that could not be printed are not lost to their file too.
void require_printed(int error) {
  if (error == 0) return;
  throw Error("standard output cannot be written (" + std::generic_category().message(error) + ")");
}

int run(const TrainSettings& settings, const CLI::Option& json_option,
        const std::stop_token& stop) {
  settings.validate();
  const std::unique_ptr<OutputFile> json = open_json(json_option);
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
  if (result.outcome == Outcome::kOutOfMemory) return exit_code(OutOfMemory(""));
  return result.outcome == Outcome::kInterrupted ? kInterrupted : 0;
}

int run_compare(const CompareSettings& settings, const CLI::Option& json_option,
                const std::stop_token& stop) {
  settings.train.validate();
  const std::unique_ptr<OutputFile> json = open_json(json_option);
  std::fprintf(stderr, "%s\n", settings.train.describe().c_str());
  ProgressBar bar;
  const Comparison comparison =
      compare(settings, {.stop = stop,
                         .progress = [&](const std::string& label, std::uint64_t done,
                                         std::uint64_t all) { bar.show(label, done, all); }});
  bar.clear();
  const int print_error = print(format_comparison(settings, comparison));
  if (json) json->commit(comparison_json(settings, comparison));
  require_printed(print_error);
  return comparison.interrupted ? kInterrupted : 0;
}

int run_program(int argc, char** argv) {
  const std::stop_token stop = stop_on_interrupt();
  // A reader of the table that went away is an error to report, after the figures are in their
  // file.
  (void)std::signal(SIGPIPE, SIG_IGN);
  set_log_level(log_level_from_environment());
  CLI::App app{"Trains under a memory budget: the host may run ahead, but only as far as it fits."};
  app.set_version_flag("--version", "weir-train " + std::string(kVersion));
  app.require_subcommand(1);
  app.fallthrough(false);

  CLI::App* run_app = app.add_subcommand("run", "train once");
  Flags run_flags(*run_app);
  run_flags.add(
      "--policy", [](CompareSettings & s) -> auto& { return s.train.policy.policy; }, parse_policy,
      "throttled, backstop, unbounded or barrier (WEIR_POLICY)");
  add_common(run_flags);
  CLI::Option* run_json_option = add_json(*run_app);

  CLI::App* compare_app = app.add_subcommand("compare", "the same job under each policy");
  bool small = false;
  compare_app->add_flag("--small", small,
                        "a small model and batches of 32, where waiting is a visible share");
  Flags compare_flags(*compare_app);
  compare_flags.add(
      "--rounds", [](CompareSettings & s) -> auto& { return s.rounds; }, parse_count,
      "pairs of reference and policy");
  add_common(compare_flags);
  CLI::Option* compare_json_option = add_json(*compare_app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::RequiredError& error) {
    // CLI11 misses the subcommand even where a wrong word stands in its place.
    const std::vector<std::string> words = app.remaining();
    if (words.empty()) throw UsageError(std::string(error.what()) + ": run or compare");
    throw UsageError("'" + words.front() + "' is not known: run or compare");
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (see weir-train --help)");
  }
  const TrainSettings base = TrainSettings::from_environment();
  CompareSettings settings{.train = base};
  if (run_app->parsed()) {
    run_flags.apply(settings);
    return run(settings.train, *run_json_option, stop);
  }
  settings = small ? CompareSettings::small(base) : CompareSettings::d2l(base);
  compare_flags.apply(settings);
  return run_compare(settings, *compare_json_option, stop);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  try {
    return weir::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir-train: %s\n", error.what());
    return weir::exit_code(error);
  }
}
