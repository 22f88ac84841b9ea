#include "trainer/compare/compare_timelines.hpp"

#include <filesystem>
#include <system_error>

#include "allocator/base/error.hpp"
#include "scheduler/admission/batch_timeline.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/page/page.hpp"
#include "trainer/run/recording.hpp"

namespace weir {
namespace {

std::string path_in(const Setting<std::string>& folder, Policy policy, const char* ending) {
  return (std::filesystem::path(folder.value) / (std::string(to_string(policy)) + ending)).string();
}

void make_folder(const Setting<std::string>& folder) {
  std::error_code error;
  (void)std::filesystem::create_directories(folder.value, error);
  if (error || !std::filesystem::is_directory(folder.value, error)) {
    refuse(folder.source, folder.value,
           "a folder, or a name for a new one (" +
               (error ? error.message() : std::string("it is not a folder")) + ")");
  }
}

}  // namespace

std::string record_run(const TrainSettings& settings, const std::string& label,
                       const CompareHooks& hooks) {
  TrainHooks run_hooks{.stop = hooks.stop};
  if (hooks.on_done) {
    run_hooks.on_done = [&](std::uint64_t done, std::uint64_t all) {
      hooks.on_done(label, done, all);
    };
  }
  number_batches_anew();
  Recording recording(settings);
  (void)train(settings, run_hooks);
  return recording.end().value().file;
}

std::vector<NamedPath> timeline_files(const Setting<std::string>& folder) {
  std::vector<NamedPath> files;
  for (const Policy policy : kComparedPolicies) {
    for (const char* ending : {".json", ".html"}) {
      files.push_back({folder.source, path_in(folder, policy, ending)});
    }
  }
  return files;
}

std::vector<std::string> record_policies(const CompareSettings& settings,
                                         const Setting<std::string>& folder,
                                         const CompareHooks& hooks) {
  make_folder(folder);
  std::vector<std::string> pages;
  for (const Policy policy : kComparedPolicies) {
    if (hooks.stop.stop_requested()) break;
    OutputFile page(folder.source, path_in(folder, policy, ".html"));
    TrainSettings one = settings.train;
    one.policy.policy = {policy, "compare"};
    one.timeline.file = {timeline::name_of_path(path_in(folder, policy, ".json")), folder.source};
    const std::string file =
        record_run(one, "timeline of " + std::string(to_string(policy)), hooks);
    page.commit(
        timeline::make_page(timeline::read_timeline(file),
                            {.title = "weir-train, policy " + std::string(to_string(policy))}));
    pages.push_back(path_in(folder, policy, ".html"));
  }
  return pages;
}

}  // namespace weir
