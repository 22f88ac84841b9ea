// weir-train run: trains once.

#include <array>
#include <cstdio>
#include <memory>

#include "allocator/base/error.hpp"
#include "tools/program/settings_lines.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/commands/flags.hpp"
#include "trainer/model/weights.hpp"
#include "trainer/report/report.hpp"
#include "trainer/run/recording.hpp"

namespace weir {
namespace {

class RunCommand {
 public:
  explicit RunCommand(CommandLine& line)
      : flags_(first_flags(line)),
        data_(line, "--data", Value("DIR"),
              "train on the data set in this directory (IDX files, as MNIST's)"),
        save_(line, "--save", "write the trained weights to FILE"),
        device_(line),
        json_(line) {
    flags_.add("--epochs", &TrainSettings::epochs, parse_count, Value("N"),
               "number of passes over the training images of --data (default: 1)");
    add_batch_size_flag(flags_, "1024, with --data 64");
    add_training_flags(flags_, {.batches = "100, with --data those of --epochs",
                                .rate = "0.005, with --data 0.1"});
    add_timeline_flags(flags_);
    add_model_flags(flags_, "host", "8");
    line.add("--static-alloc", static_alloc_,
             "submit a batch whose shape recurs as one operation in one arena");
    line.add("--static-shape", static_shape_,
             "the same, and capture it as a CUDA graph; the cpu replays it as it is");
    line.add("--save-anyway", save_anyway_, "save the weights even if training diverged");
    add_pool_flags(flags_);
    line.set_footer("Without --data, batches are generated.");
    line.set_page("docs/main-job.md");
    line.set_exit_codes(training_exit_codes());
  }

  [[nodiscard]] int run(const std::stop_token& stop) const {
    if (save_anyway_ && !save_.given()) throw UsageError("--save-anyway needs --save");
    const TrainSettings settings = read_settings();
    require_different_files(
        std::array{save_.named(), json_.named(), settings.log_file(), timeline_file(settings)},
        settings.data_files());
    require_apart_from_streams(save_.named());
    const std::unique_ptr<OutputFile> save = save_.open();
    const std::unique_ptr<OutputFile> json = json_.open();
    (void)settings.pool.open_log();  // last: it replaces an old log at once
    Recording recording(settings);
    publish(settings);
    std::fputs(settings_lines(settings.lines()).c_str(), stderr);
    ProgressBar bar;
    TrainResult result =
        train(settings, {.stop = stop, .on_done = [&](std::uint64_t done, std::uint64_t all) {
                           bar.show("batches submitted", done, all);
                         }});
    bar.clear();
    result.recording = recording.finish();
    const int print_error = json_.replaces_table() ? 0 : print(format_run(settings, result));
    say_out_of_memory(result.report);
    say_diverged(diverged(result));
    write_files(save.get(), json.get(), settings, result);
    require_printed(print_error);
    return exit_code(result.outcome, diverged(result));
  }

 private:
  /// Adds the most used flags.
  static TrainFlags first_flags(CommandLine& line) {
    TrainFlags flags(line);
    add_policy_flag(flags);
    add_budget_flags(flags);
    return flags;
  }

  [[nodiscard]] TrainSettings read_settings() const {
    TrainSettings settings = read_environment(device_);
    if (data_.given()) settings.use_data_defaults();
    flags_.apply(settings);
    if (static_alloc_) settings.memory = {StaticMemory::kAlloc, "--static-alloc"};
    if (static_shape_) settings.memory = {StaticMemory::kShape, "--static-shape"};
    settings.validate();
    require_epochs_of_data(settings.epochs, settings.batches, data_.given());
    if (data_.given() && settings.inputs.value != InputKind::kHost) {
      throw UsageError("--inputs and --data both set the source of batches: give one of them");
    }
    if (data_.given()) {
      settings.use_data(std::make_shared<const DataSet>(read_data_set(data_.name(), data_.text())),
                        {data_.text(), data_.name()});
    }
    settings.widen();
    return settings;
  }

  /// Keeps the figures even if the weights cannot be written.
  void write_files(OutputFile* save, OutputFile* json, const TrainSettings& settings,
                   const TrainResult& result) const {
    try {
      if (save != nullptr) commit_weights(*save, settings, result);
    } catch (...) {
      try {
        if (json != nullptr) json->commit(run_json(settings, result));
      } catch (const std::exception& second) {
        std::fprintf(stderr, "weir-train: %s\n", second.what());
      }
      throw;
    }
    if (json != nullptr) json->commit(run_json(settings, result));
  }

  void commit_weights(OutputFile& file, const TrainSettings& settings,
                      const TrainResult& result) const {
    if (result.weights.empty()) {
      std::fputs("weir-train: no weights were saved: training did not finish\n", stderr);
      return;
    }
    if (diverged(result) && !save_anyway_) {
      std::fputs("weir-train: no weights were saved: --save-anyway saves them anyway\n", stderr);
      return;
    }
    file.commit(encode_weights({.widths = settings.widths, .parameters = result.weights}));
  }

  bool save_anyway_ = false;
  bool static_alloc_ = false;
  bool static_shape_ = false;
  TrainFlags flags_;
  TextFlag data_;
  OutputFlag save_;
  DeviceFlag device_;
  JsonFlag json_;
};

}  // namespace

Command add_run_command(CommandLine& program) {
  return add_command<RunCommand>(program, "run", "train once, and print speed and memory");
}

}  // namespace weir
