// weir-train wide: trains a network with sparse inputs and many outputs.

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "scheduler/device/device_kind.hpp"
#include "tools/program/settings_lines.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/commands/flags.hpp"
#include "trainer/ranks/launch.hpp"
#include "trainer/ranks/open.hpp"
#include "trainer/report/wide_report.hpp"
#include "trainer/run/recording.hpp"
#include "trainer/sparse/sparse_set.hpp"
#include "trainer/wide/wide_agreement.hpp"
#include "trainer/wide/wide_train.hpp"

namespace weir {
namespace {

// ---- This process as one of the ranks.

/// Returns the device of a rank: a GPU without a number becomes that of its place on its machine.
/// Throws UsageError if there is no such GPU.
Setting<std::string> device_of_rank(Setting<std::string> chosen, const Launch& launch) {
  if (launch.launcher == Launcher::kNone || chosen.value != "cuda") return chosen;
  return choose_device(
      {"cuda:" + std::to_string(launch.local_rank), chosen.source + ", local rank"});
}

/// Leaves out the files that rank 0 alone writes. A file whose name has %r or %p is each process's
/// own, and stays.
void be_quiet(WideSettings& settings) {
  const auto is_own = [](const std::string& file) {
    return file.find("%p") != std::string::npos || file.find("%r") != std::string::npos;
  };
  for (std::string* file : {&settings.train.timeline.file.value, &settings.train.pool.log.value}) {
    if (!is_own(*file)) file->clear();
  }
}

/// Meets the other ranks only to say that this one cannot begin, so that all end at once. Throws
/// UsageError on rank 0, and returns the exit code on the others.
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

/// The ranks, from their meeting to their end.
class WideProcesses {
 public:
  /// Meets the other ranks, and compares the fields. An interrupt ends all ranks from now on: one
  /// that stopped alone would leave the others waiting; a rank that has no others stops as a
  /// process alone. Throws as open_communicator does, and on rank 0 UsageError for a difference.
  WideProcesses(const WideSettings& settings, const Launch& launch, std::vector<AgreedField> fields,
                const std::stop_token& stop)
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
      return;
    }
    if (ranks_->size() == 1) {
      stop_ = stop;
    } else {
      on_stop_.emplace(stop, [this] { ranks_->abort("was interrupted"); });
    }
  }

  /// False on other ranks than 0 if there is a difference. Then nothing more may be called.
  [[nodiscard]] bool agreed() const noexcept { return ranks_ != nullptr; }
  /// Whether this rank prints and writes.
  [[nodiscard]] bool speaks() const noexcept { return speaks_; }
  [[nodiscard]] WideHooks hooks() const { return {.stop = stop_, .ranks = ranks_.get()}; }
  /// Waits for the other ranks. Call it after a run; one that did not finish ends all ranks.
  void finish(const TrainResult& result) {
    if (result.outcome != Outcome::kFinished && ranks_->size() > 1) {
      std::fprintf(stderr, "weir-train: %s\n", result.report.c_str());
      ranks_->abort("ran " + describe_outcome(result));
    }
    on_stop_.reset();
    ranks_->finish();
  }

 private:
  const bool speaks_;
  std::unique_ptr<Communicator> ranks_;  ///< null without agreement
  std::stop_token stop_;                 ///< of a rank that has no others
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

// ---- The command.

using WideFlags = Flags<WideSettings>;

/// For users of `run`, whose --inputs is a source.
std::uint64_t parse_columns(std::string_view name, std::string_view text) {
  if (text == "device" || text == "host") {
    refuse(name, text, "a number of columns: --keep-data says where the data lie");
  }
  return WholeNumber{.most = kMostWideWidth}(name, text);
}

/// Adds flags for the widths, the loss and the optimizer.
void add_network_flags(WideFlags& flags) {
  using S = WideSettings;
  const WholeNumber width{.most = kMostWideWidth};
  flags.add("--inputs", &S::inputs, parse_columns, Value("N"),
            "columns of the sparse inputs (default: 250000, or the data set's)");
  flags.add("--hidden", &S::hidden, parse_hidden, Value("N,..."),
            "widths of the hidden layers (default: 1024,512)");
  flags.add("--outputs", &S::outputs, width, Value("N"),
            "classes (default: 200000, or the data set's)");
  flags.add(
      "--scale", &S::scale, parse_scale, Value("NUMBER"),
      "multiplies these widths, and rounds each to the nearest whole number, at least 1; those of "
      "a data set stay (default: 1)");
  flags.add("--loss", &S::loss, parse_name<SparseLoss>,
            Value::one_of(names_to(SparseLoss::kLogistic)),
            "softmax, or logistic: each class alone (default: softmax)");
  flags.add("--optimizer", &S::optimizer, parse_name<Optimizer>,
            Value::one_of(names_to(Optimizer::kAdamax)), "how weights are updated (default: adam)");
  flags.add("--precision", &S::precision, parse_name<Precision>,
            Value::one_of(names_to(Precision::kFp16)),
            "precision of the products; fp16 has a dynamic loss scale (default: float32)");
}

void add_placement_flags(WideFlags& flags) {
  using S = WideSettings;
  flags.add("--first-layer", &S::first_layer, parse_name<LayerPlace>,
            Value::one_of(names_to(LayerPlace::kCpu)),
            "cpu keeps the first layer and its moments there, and trains the rest on the device "
            "(default: device)");
  flags.add("--first-layer-budget", &S::first_layer_budget, parse_budget, Value("BYTES|PERCENT"),
            "memory of the cpu for that (default: 95%)");
}

/// Adds flags for generated rows, the readers and the pace.
void add_feeding_flags(WideFlags& flags) {
  using S = WideSettings;
  flags.add("--nnz", &S::nnz, WholeNumber{.most = SparseDraw::kMostColumns}, Value("N"),
            "mean entries of a generated row (default: 500, at most a tenth of the inputs)");
  flags.add("--epochs", &S::epochs, parse_count, Value("N"),
            "number of passes over the training rows of --data (default: 1)");
  flags.add("--test-batches", &S::test_batches, parse_count, Value("N"),
            "generated batches to test on (default: 5)");
  flags.add(
      "--keep-data", &S::keep_data, parse_name<DataPlace>,
      Value::one_of(names_to(DataPlace::kDevice)),
      "host: copy each batch of --data when it is its turn; device: copy the first epoch's batches "
      "before training and use them in each epoch (default: host)");
  flags.add("--readers", &S::readers, WholeNumber{.most = 64}, Value("N"),
            "threads that prepare batches (default: 2)");
  flags.add("--read-time", &S::read_time, parse_read_time, Value("TIME"),
            "least time that one of them takes for a batch: shows what slow readers cost");
  flags.add("--pace", &S::pace, parse_count, Value("N"),
            "batches between two lines of progress (default: 50)");
}

class WideCommand {
 public:
  explicit WideCommand(CommandLine& line)
      : train_flags_(first_flags(line)),
        data_(line, "--data", Value("DIR"),
              "train on the data set in this directory (train.libsvm and test.libsvm); without it "
              "rows are generated"),
        device_(line),
        make_(line, "--make", Value("DIR"),
              "write a generated data set to this directory, and do nothing else"),
        rows_(line, "--rows", Value("N"),
              "rows of --make to train on; a tenth as many are made to test on"),
        flags_(line),
        json_(line) {
    flags_.add(
        "--checkpoint", &WideSettings::checkpoint,
        [](std::string_view, std::string_view text) { return std::string(text); }, Value("FILE"),
        "save what training has learned, at the end and on SIGTERM too");
    flags_.add("--every", &WideSettings::every, parse_every, Value("N|DURATION|N,DURATION"),
               "batches or time between checkpoints (default: 10min)");
    line.add("--compare-precision", compare_precision_,
             "train again in float32, and print its accuracy beside");
    line.add("--wide", wide_, "show all columns, and cut nothing to fit 100 columns");
    line.add("--resume", resume_, "go on from the checkpoint");
    flags_.add(
        "--parallel", &WideSettings::parallel,
        [](std::string_view name, std::string_view text) {
          return std::optional<Parallel>(parse_name<Parallel>(name, text));
        },
        Value::one_of(names_to(Parallel::kModel)),
        "what the ranks that mpirun or torchrun started share: data, each batch's rows; model, the "
        "first and the last layer's weights");
    flags_.add("--bucket", &WideSettings::bucket, parse_some_bytes, Value("BYTES"),
               "gradients that --parallel data reduces at a time (default: 25MiB)");
    line.add("--lazy-rows", lazy_rows_,
             "update only those rows of the first layer that a batch touches: faster, and another "
             "result");
    add_network_flags(flags_);
    add_placement_flags(flags_);
    add_feeding_flags(flags_);
    add_timeline_flags(train_flags_);
    add_pool_flags(train_flags_);
    line.set_page("docs/wide.md");
    line.set_exit_codes(training_exit_codes());
  }
  [[nodiscard]] int run(const std::stop_token& stop) const {
    std::optional<CheckpointLock> lock;
    if (make_.given()) return make(read_settings({}, lock), stop);
    const Launch launch = find_launch();
    WideSettings settings;
    std::vector<AgreedField> fields;
    Outputs outputs;
    try {
      settings = read_settings(launch, lock);
      require_ranks(settings, launch.size);
      open_outputs(settings, launch, outputs);
      if (settings.parallel.value) fields = agreed_fields(settings);
    } catch (const UsageError& error) {
      if (launch.size == 1) throw;
      return refuse_together(launch, error.what());
    }
    if (!settings.parallel.value) return train(settings, {.stop = stop}, nullptr, outputs);
    fields.push_back({"--compare-precision", compare_precision_ ? "given" : "not given"});
    WideProcesses processes(settings, launch, std::move(fields), stop);
    if (!processes.agreed()) return 2;  // rank 0 says in what they differ
    if (processes.speaks()) return train(settings, processes.hooks(), &processes, outputs);
    WideResult result = train_wide(settings, processes.hooks());
    if (compare_precision_) compare_with_float32(result, settings, processes.hooks());
    processes.finish(result.run);
    return exit_code(result.run.outcome, diverged(result.run));
  }

 private:
  struct Outputs {
    std::unique_ptr<OutputFile> json;
    std::optional<Recording> recording;
  };

  /// Adds the most used flags.
  static TrainFlags first_flags(CommandLine& line) {
    TrainFlags flags(line);
    add_policy_flag(flags);
    add_budget_flags(flags);
    add_batch_size_flag(flags, "128");
    add_training_flags(flags, {.batches = "500, with --data those of --epochs",
                               .rate = "0.001; sgd 0.1, momentum 0.01, adamax 0.002",
                               .momentum = "0.9"});
    return flags;
  }

  /// Opens what this rank writes. Throws UsageError.
  void open_outputs(WideSettings& settings, const Launch& launch, Outputs& outputs) const {
    if (launch.rank == 0) {
      std::vector<NamedPath> files{json_.named(), settings.train.log_file(),
                                   timeline_file(settings.train)};
      for (NamedPath& file : settings.checkpoint_files()) files.push_back(std::move(file));
      require_different_files(files, settings.data_files());
      outputs.json = json_.open();
      (void)settings.train.pool.open_log();  // last: it replaces an old log at once
    } else {
      be_quiet(settings);
    }
    outputs.recording.emplace(settings.train);
    publish(settings.train);
  }

  /// Trains, prints and writes.
  [[nodiscard]] int train(const WideSettings& settings, WideHooks hooks, WideProcesses* processes,
                          Outputs& outputs) const {
    std::fprintf(stderr, "%s%s\n", settings_lines(settings.lines()).c_str(),
                 format_network(settings).c_str());
    ProgressBar bar;
    hooks.on_done = [&bar](std::uint64_t done, std::uint64_t all) {
      bar.show("batches submitted", done, all);
    };
    hooks.on_pace = [&bar](const PaceLine& line) {
      bar.clear();
      std::fprintf(stderr, "%s\n", format_pace(line).c_str());
    };
    WideResult result = train_wide(settings, hooks);
    bar.clear();
    result.run.recording = outputs.recording->finish();
    if (compare_precision_) compare_with_float32(result, settings, hooks);
    if (processes != nullptr) processes->finish(result.run);
    const WideTimeline timeline = read_wide_timeline(result);
    const int print_error =
        json_.replaces_table() ? 0 : print(format_wide(settings, result, timeline, wide_));
    say_out_of_memory(result.run.report);
    say_diverged(diverged(result.run));
    say_of_checkpoint(settings, result);
    if (outputs.json) outputs.json->commit(wide_json(settings, result, timeline));
    require_printed(print_error);
    if (!result.saved) return 1;
    return exit_code(result.float32_outcome.value_or(result.run.outcome), diverged(result.run));
  }

  [[nodiscard]] WideSettings read_settings(const Launch& launch,
                                           std::optional<CheckpointLock>& lock) const {
    WideSettings settings = WideSettings::from_environment(
        process_environment(), device_of_rank(device_.choose(), launch));
    settings.lazy_rows = lazy_rows_;
    settings.resume = resume_;
    flags_.apply(settings);
    train_flags_.apply(settings.train);
    require_sources_apart(settings);
    if (data_.given()) settings.read_data({data_.text(), data_.name()});
    // First, so that no other run changes the file after `settle` has looked at it. Rank 0 writes
    // it.
    const bool writes = !make_.given() && launch.rank == 0;
    if (writes) lock.emplace(settings.checkpoint.source, settings.checkpoint.value);
    settings.settle();
    if (compare_precision_ && (settings.precision.value == Precision::kFloat32 || resume_)) {
      throw UsageError(
          "--compare-precision compares a whole training with float32: give another --precision, "
          "and no --resume");
    }
    return settings;
  }

  void require_sources_apart(const WideSettings& settings) const {
    if (make_.given() != rows_.given()) throw UsageError("--make and --rows need each other");
    if (make_.given() && data_.given()) {
      throw UsageError("--make writes a data set and --data reads one: give one of them");
    }
    require_epochs_of_data(settings.epochs, settings.train.batches, data_.given());
    for (const auto* generated : {&settings.nnz, &settings.test_batches}) {
      if (data_.given() && generated->source != "default") {
        throw UsageError(generated->source + " is of generated rows: --data has its own");
      }
    }
  }

  /// Says where the file does not have what somebody who goes on from it would expect.
  static void say_of_checkpoint(const WideSettings& settings, const WideResult& result) {
    const char* const file = settings.checkpoint.value.c_str();
    const std::uint64_t done = result.first + result.run.batches;
    if (!result.saved) {
      std::fprintf(stderr, "weir-train: %s does not have batch %s: what was trained is lost\n",
                   file, std::to_string(done).c_str());
    } else if (settings.resume && done > 0 && result.run.batches == 0 &&
               result.first >= settings.train.batches.value) {
      std::fprintf(
          stderr, "weir-train: %s has batch %s already, and %s are all: nothing was trained\n",
          file, std::to_string(done).c_str(), std::to_string(settings.train.batches.value).c_str());
    }
  }

  [[nodiscard]] int make(const WideSettings& settings, const std::stop_token& stop) const {
    const std::uint64_t rows = parse_count(rows_.name(), rows_.text());
    make_sparse(make_.name(), make_.text(), rows, settings.draw(), stop);
    std::fprintf(stderr, "%s: %s to train on, %s to test on\n", make_.text().c_str(),
                 format_count(rows, "row").c_str(),
                 format_count(std::max<std::uint64_t>(rows / 10, 1), "row").c_str());
    return 0;
  }

  bool lazy_rows_ = false;
  bool resume_ = false;
  bool wide_ = false;
  bool compare_precision_ = false;
  TrainFlags train_flags_;
  TextFlag data_;
  DeviceFlag device_;
  TextFlag make_;
  TextFlag rows_;
  WideFlags flags_;
  JsonFlag json_;
};

}  // namespace

Command add_wide_command(CommandLine& program) {
  return add_command<WideCommand>(
      program, "wide",
      "train a network with sparse inputs and many outputs: 359 million parameters");
}

}  // namespace weir
