#pragma once

// Flags of the subcommands. Their values are checked like environment variables and override them.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/command_line.hpp"
#include "tools/program/output_file.hpp"
#include "trainer/run/settings.hpp"

namespace weir {

class TextFlag {
 public:
  /// `line` must outlive it.
  TextFlag(CommandLine& line, std::string name, const Value& value, const std::string& help);

  /// A command line without it is refused.
  void require() const { (void)flag_.require(); }
  /// Says that it overrides this environment variable.
  void over(const std::string& variable) const { (void)flag_.over(variable); }
  [[nodiscard]] bool given() const { return flag_.given(); }
  [[nodiscard]] const std::string& text() const noexcept { return *text_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  std::shared_ptr<std::string> text_ = std::make_shared<std::string>();
  Flag flag_;
};

class OutputFlag {
 public:
  OutputFlag(CommandLine& line, std::string name, const std::string& help)
      : flag_(line, std::move(name), Value("FILE"), help) {}

  [[nodiscard]] bool given() const { return flag_.given(); }
  /// Returns the flag and its path; no path if not given.
  [[nodiscard]] NamedPath named() const { return {flag_.name(), flag_.text()}; }
  /// Whether it is `-`: the figures replace the table on standard output.
  [[nodiscard]] bool replaces_table() const { return flag_.text() == "-"; }
  /// Null if the flag is not given. Throws UsageError if the file cannot be written.
  [[nodiscard]] std::unique_ptr<OutputFile> open() const;

 private:
  TextFlag flag_;
};

/// --json.
class JsonFlag : public OutputFlag {
 public:
  explicit JsonFlag(CommandLine& line)
      : OutputFlag(line, "--json",
                   "write the figures to FILE; - is standard output, without the table") {}
};

/// --device: parsed before the other settings, since some depend on it.
class DeviceFlag {
 public:
  explicit DeviceFlag(CommandLine& line);
  /// Returns the device to use; `auto` by default. Throws UsageError as parse_device and
  /// choose_device do.
  [[nodiscard]] Setting<std::string> choose() const;

 private:
  TextFlag flag_;
};

/// Returns the settings of the environment for the device to use, those of the timeline too. Throws
/// as TrainSettings::from_environment and DeviceFlag::choose.
[[nodiscard]] TrainSettings read_environment(const DeviceFlag& device);

/// Collects flags first, and applies them once the settings that they change are known.
template <typename Settings>
class Flags {
 public:
  explicit Flags(CommandLine& line) : line_(&line) {}

  /// `find` is a member of the settings, or a function that returns the flag's setting from them;
  /// `parse(name, text)` returns its value or throws UsageError. `variable` is the environment
  /// variable that it overrides, if any.
  template <typename Find, typename Parse>
  void add(const char* name, Find find, Parse parse, const Value& value, const std::string& help,
           const std::string& variable = {}) {
    const TextFlag flag(*line_, name, value, help);
    flag.over(variable);
    apply_.push_back([flag, find, parse](Settings& settings) {
      if (!flag.given()) return;
      std::invoke(find, settings) = {parse(flag.name(), std::string_view(flag.text())),
                                     flag.name()};
    });
  }
  void apply(Settings& settings) const {
    for (const auto& one : apply_) one(settings);
  }

 private:
  CommandLine* line_;
  std::vector<std::function<void(Settings&)>> apply_;
};

using TrainFlags = Flags<TrainSettings>;

/// What help says of defaults, which differ from command to command.
struct TrainingDefaults {
  std::string batches;
  std::string rate;
  std::string momentum = "0";
};

void add_policy_flag(TrainFlags& flags);
/// Adds flags for the budget, the device's memory and the run-ahead target. Here and below,
/// defaults are for people.
void add_budget_flags(TrainFlags& flags, const std::string& default_budget = "95%");
/// Adds flags for the pool and its settings.
void add_pool_flags(TrainFlags& flags);
void add_batch_size_flag(TrainFlags& flags, const std::string& default_size);
/// Adds flags for the amount, the rate and the seed of training.
void add_training_flags(TrainFlags& flags, const TrainingDefaults& defaults);
/// Returns the exit codes of a command that trains or predicts. `failed` says what 1 means.
[[nodiscard]] std::vector<ExitCode> training_exit_codes(
    const std::string& failed = "training diverged, or the program or the machine failed");
/// Refuses --epochs without a data set, or beside --batches.
void require_epochs_of_data(const Setting<std::uint64_t>& epochs,
                            const Setting<std::uint64_t>& batches, bool has_data);
/// Adds flags for the timeline's file and batches.
void add_timeline_flags(TrainFlags& flags);
/// Adds flags for the model's width and the source of generated batches.
void add_model_flags(TrainFlags& flags, const std::string& default_inputs,
                     const std::string& default_ring);

}  // namespace weir
