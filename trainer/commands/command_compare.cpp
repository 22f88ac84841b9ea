// weir-train compare: runs run the same job under each policy.

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <vector>

#include "tools/program/settings_lines.hpp"
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
        flags_(first_flags(line)),
        device_(line),
        json_(line),
        timelines_(line, "--timeline", Value("DIR"),
                   "write a timeline and a page for each policy to this folder; each comes from a "
                   "separate run"),
        svg_(line, "--svg", "draw the memory of each policy over time") {
    line.add("--wide", wide_, "show all columns, and cut nothing to fit 100 columns");
    line.add("--no-search", no_search_, "skip the search for the smallest budgets");
    line.add("--static", static_, "also run throttled with --static-alloc and --static-shape");
    own_flags_.add("--rounds", &CompareSettings::rounds, parse_count, Value("N"),
                   "pairs of reference and policy (default: 4, with --small 6)");
    add_batch_size_flag(flags_, "1024, with --small 32");
    add_training_flags(flags_, {.batches = "20, with --small 2000", .rate = "0.005"});
    add_model_flags(flags_, "host, with --small ring", "8, with --small 64");
    add_pool_flags(flags_);
    line.set_footer(
        "Each run is paired with a reference: an unbounded run that has enough memory.");
    line.set_page("docs/main-job.md");
    line.set_exit_codes(training_exit_codes());
  }
  [[nodiscard]] int run(const std::stop_token& stop) const {
    const TrainSettings base = read_environment(device_);
    CompareSettings settings = small_ ? CompareSettings::small(base) : CompareSettings::d2l(base);
    settings.search = !no_search_;
    settings.with_static = static_;
    own_flags_.apply(settings);
    flags_.apply(settings.train);
    settings.fit_to_model();
    settings.train.validate();
    std::vector<NamedPath> written{json_.named(), svg_.named(), settings.train.log_file()};
    const Setting<std::string> folder{timelines_.text(), timelines_.name()};
    if (timelines_.given()) std::ranges::move(timeline_files(folder), std::back_inserter(written));
    require_different_files(written);
    const std::unique_ptr<OutputFile> json = json_.open();
    const std::unique_ptr<OutputFile> svg = svg_.open();
    (void)settings.train.pool.open_log();  // last: it replaces an old log at once
    publish(settings.train);
    std::fputs(settings_lines(settings.lines()).c_str(), stderr);
    ProgressBar bar;
    const CompareHooks hooks{.stop = stop,
                             .on_done = [&](const std::string& label, std::uint64_t done,
                                            std::uint64_t all) { bar.show(label, done, all); }};
    const Comparison comparison = compare(settings, hooks);
    std::vector<std::string> pages;
    if (timelines_.given()) pages = record_policies(settings, folder, hooks);
    std::string drawn;
    if (svg) drawn = comparison_svg(settings, comparison, record_curves(settings, hooks));
    bar.clear();
    for (const std::string& page : pages) std::fprintf(stderr, "timeline: %s\n", page.c_str());
    const int print_error =
        json_.replaces_table() ? 0 : print(format_comparison(settings, comparison, wide_));
    say_diverged(diverged(comparison));
    if (json) json->commit(comparison_json(settings, comparison));
    if (svg) svg->commit(drawn);
    require_printed(print_error);
    return exit_code(outcome_of(comparison), diverged(comparison));
  }

 private:
  /// Adds the most used flags.
  TrainFlags first_flags(CommandLine& line) {
    line.add("--small", small_,
             "a small model and batches of 32, where waiting is a visible share");
    TrainFlags flags(line);
    add_budget_flags(
        flags, "64MiB, with --small 4MiB; what the model needs on a GPU or with --width-factor");
    return flags;
  }

  bool small_ = false;
  bool no_search_ = false;
  bool wide_ = false;
  bool static_ = false;
  Flags<CompareSettings> own_flags_;
  TrainFlags flags_;
  DeviceFlag device_;
  JsonFlag json_;
  TextFlag timelines_;
  OutputFlag svg_;
};

}  // namespace

Command add_compare_command(CommandLine& program) {
  return add_command<CompareCommand>(program, "compare",
                                     "train under each policy, and compare speed and memory");
}

}  // namespace weir
