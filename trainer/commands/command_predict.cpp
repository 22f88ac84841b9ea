// weir-train predict: inference with saved weights.

#include <array>
#include <cstdio>
#include <memory>

#include "allocator/base/error.hpp"
#include "tools/program/settings_lines.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/program/table.hpp"
#include "trainer/commands/command.hpp"
#include "trainer/commands/flags.hpp"
#include "trainer/report/report.hpp"
#include "trainer/run/predict.hpp"
#include "trainer/run/recording.hpp"

namespace weir {
namespace {

class PredictCommand {
 public:
  explicit PredictCommand(CommandLine& line)
      : data_(line, "--data", Value("DIR"),
              "the directory of the data set, whose test files are classified"),
        weights_(line, "--weights", Value("FILE"), "the weights, as run --save writes them"),
        device_(line),
        flags_(line),
        json_(line) {
    data_.require();
    weights_.require();
    add_policy_flag(flags_);
    add_budget_flags(flags_);
    add_batch_size_flag(flags_, "64");
    add_timeline_flags(flags_);
    add_pool_flags(flags_);
    line.set_page("docs/data.md");
    line.set_exit_codes(training_exit_codes("the program or the machine failed"));
  }

  [[nodiscard]] int run(const std::stop_token& stop) const {
    PredictSettings settings{.train = read_environment(device_)};
    settings.train.use_data_defaults();
    flags_.apply(settings.train);
    settings.train.validate();
    settings.load({data_.text(), data_.name()}, {weights_.text(), weights_.name()});
    require_different_files(
        std::array{json_.named(), settings.train.log_file(), timeline_file(settings.train)},
        settings.files());
    const std::unique_ptr<OutputFile> json = json_.open();
    (void)settings.train.pool.open_log();  // last: it replaces an old log at once
    Recording recording(settings.train);
    publish(settings.train);
    std::fputs(settings_lines(settings.lines()).c_str(), stderr);
    ProgressBar bar;
    TrainResult result =
        predict(settings, {.stop = stop, .on_done = [&](std::uint64_t done, std::uint64_t all) {
                             bar.show("images submitted", done, all);
                           }});
    bar.clear();
    result.recording = recording.finish();
    const int print_error = json_.replaces_table() ? 0 : print(format_predict(settings, result));
    say_out_of_memory(result.report);
    if (json) json->commit(predict_json(settings, result));
    require_printed(print_error);
    return exit_code(result.outcome);
  }

 private:
  TextFlag data_;
  TextFlag weights_;
  DeviceFlag device_;
  TrainFlags flags_;
  JsonFlag json_;
};

}  // namespace

Command add_predict_command(CommandLine& program) {
  return add_command<PredictCommand>(program, "predict", "classify test images with saved weights");
}

}  // namespace weir
