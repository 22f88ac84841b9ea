#include "trainer/commands/wide_processes.hpp"

#include <cstdio>
#include <utility>

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"
#include "trainer/ranks/open.hpp"
#include "trainer/run/device_choice.hpp"

namespace weir {

Setting<std::string> device_of_rank(Setting<std::string> chosen, const Launch& launch) {
  if (launch.launcher == Launcher::kNone || chosen.value != "cuda") return chosen;
  return choose_device(
      {"cuda:" + std::to_string(launch.local_rank), chosen.source + ", local rank"});
}

void be_quiet(WideSettings& settings) {
  const auto is_own = [](const std::string& file) {
    return file.find("%p") != std::string::npos || file.find("%r") != std::string::npos;
  };
  for (std::string* file : {&settings.train.timeline.file.value, &settings.train.pool.log.value}) {
    if (!is_own(*file)) file->clear();
  }
}

WideProcesses::WideProcesses(const WideSettings& settings, const Launch& launch,
                             std::vector<AgreedField> fields, const std::stop_token& stop)
    : ranks_(open_communicator(launch, parse_device_id(settings.train.device.value))) {
  try {
    agree(*ranks_, std::move(fields));
  } catch (const UsageError&) {
    if (speaks()) throw;
    agreed_ = false;
    return;
  }
  on_stop_.emplace(stop, [this] { ranks_->abort("was interrupted"); });
}

void WideProcesses::finish(const TrainResult& result) {
  if (result.outcome != Outcome::kFinished) {
    std::fprintf(stderr, "weir-train: %s\n", result.report.c_str());
    ranks_->abort("ran " + describe_outcome(result));
  }
  on_stop_.reset();
  ranks_->finish();
}

}  // namespace weir
