#include "trainer/commands/flags.hpp"

#include <string>
#include <utility>

#include "allocator/pool_kind.hpp"

namespace weir {

TextFlag::TextFlag(CommandLine& line, std::string name, const std::string& help)
    : name_(std::move(name)), flag_(line.add(name_, *text_, help)) {}

std::unique_ptr<OutputFile> OutputFlag::open() const {
  if (!flag_.given()) return nullptr;
  return std::make_unique<OutputFile>(flag_.name(), flag_.text());
}

DeviceFlag::DeviceFlag(CommandLine& line)
    : flag_(line, "--device",
            "cpu, cuda, cuda:N for GPU number N, or auto: cuda when a GPU answers, else cpu "
            "(default: auto)") {}

Setting<std::string> DeviceFlag::choose() const {
  if (!flag_.given()) return choose_device(Setting<std::string>::by_default("auto"));
  return choose_device({parse_device(flag_.name(), flag_.text()), flag_.name()});
}

void add_policy_flag(TrainFlags& flags) {
  flags.add(
      "--policy", [](TrainSettings & s) -> auto& { return s.policy.policy; }, parse_policy,
      "throttled, backstop, unbounded or barrier (WEIR_POLICY)");
}

void add_memory_flags(TrainFlags& flags) {
  using S = TrainSettings;
  flags.add(
      "--device-memory", [](S & s) -> auto& { return s.device_memory; }, parse_device_memory,
      "device memory, such as 2GiB (default: half of the machine's, all of a GPU's)");
  flags.add(
      "--budget", [](S & s) -> auto& { return s.pool.budget; }, parse_budget,
      "96MiB, or 80% of the device's memory (WEIR_BUDGET)");
  flags.add(
      "--pool", [](S & s) -> auto& { return s.pool.kind; }, parse_pool_kind,
      std::string(allowed_kinds_of_pool()) + " (WEIR_POOL)");
  flags.add(
      "--pool-page-size", [](S & s) -> auto& { return s.pool.page; }, parse_page,
      "smallest unit of a pool in bytes (WEIR_POOL_PAGE_SIZE)");
  flags.add(
      "--pool-linear-cutoff", [](S & s) -> auto& { return s.pool.cutoff; }, parse_cutoff,
      "log2 of the size where round's powers of two end, 20 to 34 (WEIR_POOL_LINEAR_CUTOFF)");
  flags.add(
      "--pool-segment-size", [](S & s) -> auto& { return s.pool.segment; }, parse_segment,
      "best_fit requests this much at a time: 2MiB or more, or all (WEIR_POOL_SEGMENT_SIZE)");
  flags.add(
      "--pool-large-round-size", [](S & s) -> auto& { return s.pool.large_round; },
      parse_large_round,
      "naive rounds larger sizes to multiples of this (WEIR_POOL_LARGE_ROUND_SIZE)");
  flags.add(
      "--run-ahead", [](S & s) -> auto& { return s.policy.run_ahead; }, parse_run_ahead,
      "auto, a number of batches, a time such as 20ms, or off "
      "(WEIR_RUN_AHEAD)");
}

void add_batch_size_flag(TrainFlags& flags) {
  flags.add(
      "--batch-size", [](TrainSettings & s) -> auto& { return s.batch_size; }, parse_count,
      "rows of a batch");
}

void add_training_flags(TrainFlags& flags) {
  using S = TrainSettings;
  flags.add(
      "--batches", [](S & s) -> auto& { return s.batches; }, parse_count, "batches to train on");
  flags.add(
      "--lr", [](S & s) -> auto& { return s.learning_rate; }, parse_rate, "learning rate");
  flags.add(
      "--momentum", [](S & s) -> auto& { return s.momentum; }, parse_momentum, "0 is plain SGD");
  flags.add(
      "--seed", [](S & s) -> auto& { return s.seed; }, parse_seed, "of the weights and the data");
}

void add_timeline_flags(TrainFlags& flags) {
  flags.add(
      "--timeline", [](TrainSettings & s) -> auto& { return s.timeline.file; },
      timeline::parse_timeline_file,
      "record a timeline to this file: " + timeline::list_suffixes(timeline::FormatUse::kRecord) +
          " (WEIR_TIMELINE)");
  flags.add(
      "--timeline-batches", [](TrainSettings & s) -> auto& { return s.timeline.batches; },
      timeline::parse_batch_range, "10:20 records batches 10 to 19 (WEIR_TIMELINE_BATCHES)");
}

void add_model_flags(TrainFlags& flags) {
  using S = TrainSettings;
  flags.add(
      "--width-factor", [](S & s) -> auto& { return s.width_factor; }, parse_width_factor,
      "multiplies the widths of the hidden layers (default: 1)");
  flags.add(
      "--inputs", [](S & s) -> auto& { return s.inputs; }, parse_inputs,
      "of generated batches: host, made on the way and copied; ring, made beforehand and copied "
      "in turn; drawn, by the device (default: host, with compare --small ring)");
  flags.add(
      "--ring", [](S & s) -> auto& { return s.ring; }, parse_count,
      "batches that are made beforehand (default: 8, with compare --small 64)");
}

}  // namespace weir
