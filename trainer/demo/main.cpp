// weir-demo: compares the policies on a small job, where waiting shows, and says in a line what a
// larger one takes. weir-train compare does the same, with flags, timelines and pictures.

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "allocator/base/error.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/settings_lines.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "trainer/compare/compare.hpp"
#include "trainer/report/report.hpp"
#include "trainer/run/settings.hpp"

namespace weir {
namespace {

/// Four pairs take twenty seconds on two cores, and a minute beside as much other work.
CompareSettings small_job(TrainSettings base) {
  CompareSettings settings = CompareSettings::small(std::move(base));
  settings.rounds.value = 4;
  return settings;
}

/// One pair, of which only the memory is shown.
CompareSettings d2l_job(TrainSettings base) {
  CompareSettings settings = CompareSettings::d2l(std::move(base));
  settings.rounds.value = 1;
  settings.search = false;
  settings.policies = {Policy::kUnbounded, Policy::kThrottled};
  return settings;
}

Comparison run(CompareSettings& settings, bool quick) {
  if (quick) {
    settings.rounds.value = 1;
    settings.train.batches.value = 2;
    settings.search = false;
  }
  settings.fit_to_model();
  settings.train.validate();
  std::fputs(settings_lines(settings.train.memory_lines()).c_str(), stderr);
  ProgressBar bar;
  return compare(settings, {.on_done = [&](const std::string& label, std::uint64_t done,
                                           std::uint64_t all) { bar.show(label, done, all); }});
}

int demo(bool quick) {
  require_standard_output();
  const TrainSettings base = TrainSettings::from_environment(
      process_environment(), choose_device(Setting<std::string>::by_default("auto")));
  CompareSettings small = small_job(base);
  const Comparison policies = run(small, quick);
  require_printed(print(format_comparison(small, policies) + "\n"));
  CompareSettings d2l = d2l_job(base);
  const Comparison larger = run(d2l, quick);
  const std::string subject =
      "The job of d2l.ai, batches of " + std::to_string(d2l.train.batch_size.value) + " rows";
  require_printed(print(wrapped(claim_of(d2l, larger, subject), 2)));
  return diverged(policies) || diverged(larger) ? 1 : 0;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  return weir::run_main("weir-demo", [&] {
    const bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
    if (argc > 1 && !quick) {
      throw weir::UsageError(
          "weir-demo has one flag, --quick: two batches a run, to see that it works");
    }
    return weir::demo(quick);
  });
}
