#pragma once

// What follows from the facts of a machine: for each thing checked, whether it works and, if not,
// one line of what to do. Pure.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"
#include "tools/weir/doctor/facts.hpp"

namespace weir::cli::doctor {

enum class State : std::uint8_t {
  kOk,
  kWarn,   ///< something works differently, or not as well as it could
  kFails,  ///< something does not work
};

/// What people use Weir for.
enum class Use : std::uint8_t {
  kRun,         ///< a GPU program under `weir run`
  kPlug,        ///< PyTorch's tensors from Weir
  kTrainGpu,    ///< weir-train on a GPU
  kTrainCpu,    ///< weir-train on the cpu
  kDeviceWork,  ///< what the device did, in timelines
  kShare,       ///< one budget of several processes
};

[[nodiscard]] constexpr auto names_of(State /*of*/) noexcept {
  return name_table("ok", "warn", "fails");
}
[[nodiscard]] constexpr auto names_of(Group /*of*/) noexcept {
  return name_table("system", "driver", "library", "python", "settings", "limits", "environment");
}
/// In JSON.
[[nodiscard]] constexpr auto names_of(Use /*of*/) noexcept {
  return name_table("run", "plug", "train-gpu", "train-cpu", "device-work", "share");
}

struct Finding {
  Group group = Group::kSystem;
  std::string check;  ///< its name in JSON; never changes
  State state = State::kOk;
  std::string text{};
  std::string remedy{};       ///< empty if `state` is kOk
  std::vector<Use> breaks{};  ///< what does not work because of it

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Collects the findings of one check after another.
class Findings {
 public:
  /// Begins a check, whose failures break these uses.
  void begin(Group group, std::string check, std::vector<Use> breaks) {
    next_ = {.group = group, .check = std::move(check), .breaks = std::move(breaks)};
  }
  void ok(std::string text) { add(State::kOk, std::move(text), {}, {}); }
  /// All works, but not as well as it could.
  void warn(std::string text, std::string remedy) {
    add(State::kWarn, std::move(text), std::move(remedy), {});
  }
  /// What the check is for does not work, and nobody need want it.
  void lacks(std::string text, std::string remedy) {
    add(State::kWarn, std::move(text), std::move(remedy), next_.breaks);
  }
  void fails(std::string text, std::string remedy) {
    add(State::kFails, std::move(text), std::move(remedy), next_.breaks);
  }
  /// Makes it break this use too.
  void breaks(Use use) { all_.back().breaks.push_back(use); }
  [[nodiscard]] std::vector<Finding> take() { return std::move(all_); }

 private:
  void add(State state, std::string text, std::string remedy, std::vector<Use> broken) {
    Finding& added = all_.emplace_back(next_);
    added.state = state;
    added.text = std::move(text);
    added.remedy = std::move(remedy);
    added.breaks = std::move(broken);
  }

  Finding next_;
  std::vector<Finding> all_;
};

/// All findings, in the order in which they are printed.
[[nodiscard]] std::vector<Finding> check_all(const Facts& facts);

/// Whether the report speaks of PyTorch's plug: PyTorch is installed, or nobody could look.
[[nodiscard]] bool concerns_torch(const Facts& facts, const std::vector<Finding>& findings);

/// One row of the table of checks.
struct Check {
  Group group;
  const char* name;         ///< in JSON; never changes
  std::vector<Use> breaks;  ///< what does not work where it fails
  /// Adds what it finds: nothing, if the facts say nothing about it.
  void (*judge)(const Facts& facts, Findings& found);
};

/// NVIDIA's driver and devices, cuBLAS and CUPTI.
[[nodiscard]] std::vector<Check> driver_checks();
/// libweir.so, and a small program with it; the interpreter and PyTorch's plug.
[[nodiscard]] std::vector<Check> library_checks();
/// Weir's variables, and MXNet's that Weir reads; limits; others' variables.
[[nodiscard]] std::vector<Check> settings_checks();

/// Reads `variables`, which must outlive it.
[[nodiscard]] Environment environment_of(const Variables& variables);
/// Returns how to find the page, such as `environment.md`: its path where it is here. No check
/// names a path of ours otherwise: whoever installed a package has no clone.
[[nodiscard]] std::string page(const Facts& facts, const std::string& name);
/// Returns what makes a plug for a PyTorch that has none.
[[nodiscard]] std::string build_a_plug(const Facts& facts);

}  // namespace weir::cli::doctor
