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

int refuse_together(const Launch& launch, const std::string& refusal) {
  // Nobody uses the device, and torchrun's ranks may only meet for a GPU.
  const DeviceId gpu{.kind = DeviceKind::kCuda, .ordinal = launch.local_rank};
  bool met = false;
  RanksOptions options;
  options.before_device = [&](Communicator& ranks) {
    met = true;
    require_none_refused(ranks, refusal);
  };
  try {
    (void)open_communicator(launch, gpu, options);
  } catch (const std::exception&) {
    if (!met) throw UsageError(refusal);  // there are no others, as it seems
    if (launch.rank == 0) throw;
  }
  return 2;  // rank 0 says why
}

WideProcesses::WideProcesses(const WideSettings& settings, const Launch& launch,
                             std::vector<AgreedField> fields, const std::stop_token& stop)
    : speaks_(launch.rank == 0) {
  const DeviceId device = parse_device_id(settings.train.device.value);
  fields.push_back({"the kind of --device", std::string(kind_of(device).name)});
  RanksOptions options;
  options.before_device = [&fields](Communicator& ranks) {
    require_none_refused(ranks, "");
    agree(ranks, std::move(fields));
  };
  try {
    ranks_ = open_communicator(launch, device, options);
  } catch (const UsageError&) {
    if (speaks_) throw;
    agreed_ = false;
    return;
  }
  if (ranks_->size() == 1) {
    stop_ = stop;
  } else {
    on_stop_.emplace(stop, [this] { ranks_->abort("was interrupted"); });
  }
}

void WideProcesses::finish(const TrainResult& result) {
  if (result.outcome != Outcome::kFinished && ranks_->size() > 1) {
    std::fprintf(stderr, "weir-train: %s\n", result.report.c_str());
    ranks_->abort("ran " + describe_outcome(result));
  }
  on_stop_.reset();
  ranks_->finish();
}

}  // namespace weir
