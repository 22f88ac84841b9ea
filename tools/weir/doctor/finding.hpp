#pragma once

// What one check of `weir doctor` found, and for what it matters.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::cli::doctor {

enum class State : std::uint8_t {
  kOk,
  kWarn,   ///< something works differently, or not as well as it could
  kFails,  ///< something does not work
};

enum class Group : std::uint8_t {
  kSystem,
  kDriver,
  kLibrary,
  kPython,
  kSettings,
  kLimits,
  kEnvironment,
};

/// What people use Weir for.
enum class Use : std::uint8_t {
  kRun,         ///< a GPU program under `weir run`
  kPlug,        ///< PyTorch's tensors from Weir
  kTrainGpu,    ///< weir-train on a GPU
  kTrainCpu,    ///< weir-train on the cpu
  kDeviceWork,  ///< what the device did, in timelines
  kLive,        ///< weir ps, top and set
  kShare,       ///< one budget of several processes
};

struct Finding {
  Group group = Group::kSystem;
  std::string check;  ///< its name in JSON; never changes
  State state = State::kOk;
  std::string text;
  std::string remedy;       ///< empty if `state` is kOk
  std::vector<Use> breaks;  ///< what does not work because of it
  std::string setting{};    ///< the variable that this is the verdict on; empty: none

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// `ok`, `warn` or `fails`.
[[nodiscard]] std::string_view to_string(State state) noexcept;
/// `driver`, for example.
[[nodiscard]] std::string_view to_string(Group group) noexcept;
/// The name in JSON: `train-gpu`.
[[nodiscard]] std::string_view to_string(Use use) noexcept;
/// The name for people: `weir-train on a GPU`.
[[nodiscard]] std::string_view described(Use use) noexcept;

/// Collects the findings of one group.
class Findings {
 public:
  explicit Findings(Group group) : group_(group) {}

  void ok(std::string check, std::string text) {
    add(std::move(check), State::kOk, std::move(text), {}, {});
  }
  void warn(std::string check, std::string text, std::string remedy, std::vector<Use> breaks = {}) {
    add(std::move(check), State::kWarn, std::move(text), std::move(remedy), std::move(breaks));
  }
  void fails(std::string check, std::string text, std::string remedy, std::vector<Use> breaks) {
    add(std::move(check), State::kFails, std::move(text), std::move(remedy), std::move(breaks));
  }
  /// Makes the last finding the verdict on this variable.
  void about(std::string variable) { all_.back().setting = std::move(variable); }
  [[nodiscard]] std::vector<Finding> take() { return std::move(all_); }

 private:
  void add(std::string check, State state, std::string text, std::string remedy,
           std::vector<Use> breaks) {
    all_.push_back({.group = group_,
                    .check = std::move(check),
                    .state = state,
                    .text = std::move(text),
                    .remedy = std::move(remedy),
                    .breaks = std::move(breaks)});
  }

  const Group group_;
  std::vector<Finding> all_;
};

}  // namespace weir::cli::doctor
