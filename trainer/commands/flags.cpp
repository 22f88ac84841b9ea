#include "trainer/commands/flags.hpp"

#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/pool_options.hpp"

namespace weir {
namespace {

std::string with_default(const std::string& help, const std::string& text) {
  return help + " (default: " + text + ")";
}

}  // namespace

TextFlag::TextFlag(CommandLine& line, std::string name, const Value& value, const std::string& help)
    : name_(std::move(name)), flag_(line.add(name_, *text_, value, help)) {}

std::unique_ptr<OutputFile> OutputFlag::open() const {
  if (!flag_.given()) return nullptr;
  return std::make_unique<OutputFile>(flag_.name(), flag_.text());
}

DeviceFlag::DeviceFlag(CommandLine& line)
    : flag_(line, "--device", Value("auto|cpu|cuda|cuda:N"),
            "auto is cuda when a GPU answers, else cpu; cuda:N is GPU number N (default: auto)") {}

Setting<std::string> DeviceFlag::choose() const {
  if (!flag_.given()) return choose_device(Setting<std::string>::by_default("auto"));
  return choose_device({parse_device(flag_.name(), flag_.text()), flag_.name()});
}

TrainSettings read_environment(const DeviceFlag& device) {
  TrainSettings settings = TrainSettings::from_environment(process_environment(), device.choose());
  settings.timeline = timeline::TimelineSettings::from_environment();
  return settings;
}

void add_policy_flag(TrainFlags& flags) {
  flags.add(
      "--policy", [](TrainSettings & s) -> auto& { return s.policy.policy; }, parse_name<Policy>,
      Value::one_of(names_to(Policy::kBarrier)),
      "throttled (default) holds batches back early; backstop only waits where memory would run "
      "out; "
      "unbounded never waits; barrier waits after each batch",
      "WEIR_POLICY");
}

void add_budget_flags(TrainFlags& flags, const std::string& default_budget) {
  using S = TrainSettings;
  flags.add(
      "--budget", [](S & s) -> auto& { return s.pool.budget; }, parse_budget,
      Value("BYTES|PERCENT"),
      with_default("how much of the device's memory may be used", default_budget), "WEIR_BUDGET");
  flags.add("--device-memory", &S::device_memory, parse_device_memory, Value("BYTES"),
            "the device's memory (default: half of the machine's, all of a GPU's)");
  flags.add(
      "--run-ahead", [](S & s) -> auto& { return s.policy.run_ahead; }, parse_run_ahead,
      Value("auto|N|TIME|off"),
      with_default("how far batches may run ahead of the device: N batches, or device time",
                   "auto"),
      "WEIR_RUN_AHEAD");
}

void add_pool_flags(TrainFlags& flags) {
  using S = TrainSettings;
  flags.add(
      "--pool", [](S & s) -> auto& { return s.pool.kind; }, parse_pool_kind,
      Value::one_of(names_to(PoolKind::kPaged)),
      with_default("the pool that memory comes from", "round"), "WEIR_POOL");
  flags.add(
      "--pool-page-size", [](S & s) -> auto& { return s.pool.page; }, parse_page, Value("BYTES"),
      with_default("smallest unit of a pool", "4KiB"), "WEIR_POOL_PAGE_SIZE");
  flags.add(
      "--pool-linear-cutoff", [](S & s) -> auto& { return s.pool.cutoff; }, parse_cutoff,
      Value("N"), with_default("log2 of the size where round's powers of two end, 20 to 34", "24"),
      "WEIR_POOL_LINEAR_CUTOFF");
  flags.add(
      "--pool-segment-size", [](S & s) -> auto& { return s.pool.segment; }, parse_segment,
      Value("BYTES|all"),
      with_default("best_fit requests this much at a time: 2MiB or more, or all", "64MiB"),
      "WEIR_POOL_SEGMENT_SIZE");
  flags.add(
      "--pool-large-round-size", [](S & s) -> auto& { return s.pool.large_round; },
      parse_large_round, Value("BYTES"),
      with_default("naive rounds larger sizes to multiples of this", "2MiB"),
      "WEIR_POOL_LARGE_ROUND_SIZE");
}

void add_batch_size_flag(TrainFlags& flags, const std::string& default_size) {
  flags.add("--batch-size", &TrainSettings::batch_size, parse_count, Value("N"),
            with_default("rows of a batch", default_size));
}

void add_training_flags(TrainFlags& flags, const TrainingDefaults& defaults) {
  using S = TrainSettings;
  flags.add("--batches", &S::batches, parse_count, Value("N"),
            with_default("batches to train on", defaults.batches));
  flags.add("--lr", &S::learning_rate, parse_rate, Value("NUMBER"),
            with_default("learning rate", defaults.rate));
  flags.add("--momentum", &S::momentum, parse_momentum, Value("NUMBER"),
            with_default("momentum, from 0, which is plain SGD, to below 1", defaults.momentum));
  flags.add("--seed", &S::seed, parse_seed, Value("N"),
            with_default("seed of the weights and the data", "1"));
}

void add_timeline_flags(TrainFlags& flags) {
  flags.add(
      "--timeline", [](TrainSettings & s) -> auto& { return s.timeline.file; },
      timeline::parse_timeline_file, Value("FILE"),
      "record a timeline: " + timeline::list_suffixes(timeline::FormatUse::kRecord),
      "WEIR_TIMELINE");
  flags.add(
      "--timeline-batches", [](TrainSettings & s) -> auto& { return s.timeline.batches; },
      timeline::parse_batch_range, Value("FIRST:END"),
      with_default("10:20 records batches 10 to 19", "all of them"), "WEIR_TIMELINE_BATCHES");
}

void add_model_flags(TrainFlags& flags, const std::string& default_inputs,
                     const std::string& default_ring) {
  using S = TrainSettings;
  flags.add("--width-factor", &S::width_factor, parse_width_factor, Value("N"),
            with_default("multiplies the widths of the hidden layers", "1"));
  flags.add(
      "--inputs", &S::inputs, parse_name<InputKind>, Value::one_of(names_to(InputKind::kDrawn)),
      with_default("generated batches: host, made on the way and copied; ring, made beforehand and "
                   "copied in turn; drawn, by the device",
                   default_inputs));
  flags.add("--ring", &S::ring, parse_count, Value("N"),
            with_default("batches that --inputs ring makes beforehand", default_ring));
}

void require_epochs_of_data(const Setting<std::uint64_t>& epochs,
                            const Setting<std::uint64_t>& batches, bool has_data) {
  if (epochs.source == "default") return;
  if (!has_data) {
    throw UsageError("--epochs needs --data: generated batches have no epochs, use --batches");
  }
  if (batches.source != "default") {
    throw UsageError("--epochs and --batches both set the length of training: give one of them");
  }
}

std::vector<ExitCode> training_exit_codes(const std::string& failed) {
  return {{"0", "finished"},
          {"1", failed},
          {"2", "bad input"},
          {"3", "out of memory"},
          {"130", "interrupted, and the figures so far are printed"}};
}

}  // namespace weir
