// weir-train compare: runs run the same job under each policy.

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <vector>

#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/commands/flags.hpp"
#include "trainer/compare/compare.hpp"
#include "trainer/compare/compare_timelines.hpp"
#include "trainer/report/report.hpp"
#include "trainer/run/recording.hpp"

namespace weir {
namespace {

class CompareCommand {
 public:
  explicit CompareCommand(CommandLine& line)
      : own_flags_(line),
        device_(line),
        flags_(line),
        json_(line, "--json",
              "write the figures to this file; - is standard output, without the table"),
        timelines_(line, "--timeline",
                   "write a timeline and a page for each policy to this folder; each comes from a "
                   "separate run") {
    line.add("--small", small_,
             "a small model and batches of 32, where waiting is a visible share");
    line.add("--no-search", no_search_, "skip the search for the smallest budgets");
    line.add("--static", static_, "also run throttled with --static-alloc and --static-shape");
    own_flags_.add(
        "--rounds", [](CompareSettings & s) -> auto& { return s.rounds; }, parse_count,
        "pairs of reference and policy");
    add_memory_flags(flags_);
    add_batch_size_flag(flags_);
    add_training_flags(flags_);
    add_model_flags(flags_);
  }
  CompareCommand(const CompareCommand&) = delete;  // a flag writes into it
  CompareCommand& operator=(const CompareCommand&) = delete;

  [[nodiscard]] int run(const std::stop_token& stop) const {
    const TrainSettings base =
        TrainSettings::from_environment(process_environment(), device_.choose());
    CompareSettings settings = small_ ? CompareSettings::small(base) : CompareSettings::d2l(base);
    settings.search = !no_search_;
    settings.with_static = static_;
    own_flags_.apply(settings);
    flags_.apply(settings.train);
    settings.fit_to_model();
    settings.train.validate();
    std::vector<NamedPath> written{json_.named(), settings.train.log_file()};
    const Setting<std::string> folder{timelines_.text(), timelines_.name()};
    if (timelines_.given()) std::ranges::move(timeline_files(folder), std::back_inserter(written));
    require_different_files(written);
    const std::unique_ptr<OutputFile> json = json_.open();
    (void)settings.train.pool.open_log();  // last: it replaces an old log at once
    publish(settings.train);
    std::fprintf(stderr, "%s\n", settings.train.describe().c_str());
    ProgressBar bar;
    const CompareHooks hooks{.stop = stop,
                             .on_done = [&](const std::string& label, std::uint64_t done,
                                            std::uint64_t all) { bar.show(label, done, all); }};
    const Comparison comparison = compare(settings, hooks);
    std::vector<std::string> pages;
    if (timelines_.given()) pages = record_policies(settings, folder, hooks);
    bar.clear();
    for (const std::string& page : pages) std::fprintf(stderr, "timeline: %s\n", page.c_str());
    const int print_error =
        json_.replaces_table() ? 0 : print(format_comparison(settings, comparison));
    say_diverged(diverged(comparison));
    if (json) json->commit(comparison_json(settings, comparison));
    require_printed(print_error);
    return exit_code(outcome_of(comparison), diverged(comparison));
  }

 private:
  bool small_ = false;
  bool no_search_ = false;
  bool static_ = false;
  Flags<CompareSettings> own_flags_;
  DeviceFlag device_;
  TrainFlags flags_;
  OutputFlag json_;
  TextFlag timelines_;
};

}  // namespace

Command add_compare_command(CommandLine& program) {
  CommandLine& line = program.add_command("compare", "run the same job under each policy");
  const auto command = std::make_shared<CompareCommand>(line);
  return {line, [command](const std::stop_token& stop) { return command->run(stop); }};
}

}  // namespace weir
