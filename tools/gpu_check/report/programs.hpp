#pragma once

// What tools/gpu_check/programs/run_all.py found: programs that know nothing of Weir, run without
// it and with it. The only place that reads the summary which `weir run --json` writes.

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::gpu_check {

/// The step that writes them.
inline constexpr const char* kProgramsStep = "programs";

/// A program as plan.py names it.
struct UnmodifiedProgram {
  const char* name;
  const char* title;
};
/// Each of these with and without Weir: the same losses, and Weir serves the memory.
inline constexpr std::array kTrainingPrograms{
    UnmodifiedProgram{"torch_resnet", "PyTorch, residual network"},
    UnmodifiedProgram{"torch_gpt", "PyTorch, transformer"},
    UnmodifiedProgram{"torch_graphs", "PyTorch, captured step"},
    UnmodifiedProgram{"torch_workers", "PyTorch, forked workers"},
    UnmodifiedProgram{"torch_compile", "PyTorch, torch.compile"},
    UnmodifiedProgram{"cupy_loop", "CuPy, products"},
    UnmodifiedProgram{"jax_train", "JAX, dense network"},
};
inline constexpr UnmodifiedProgram kPrefetchProgram{"torch_prefetch", "PyTorch, prefetching"};
inline constexpr UnmodifiedProgram kSharedProgram{"torch_shared", "PyTorch, 8 processes"};

/// Of all devices that the program used.
struct SwapInFigures {
  double served_bytes = 0;
  double passed_bytes = 0;  ///< device memory that Weir could have served
  double other_bytes = 0;   ///< device memory that only the driver can: code
  double peak_reserved_bytes = 0;
  double budget_bytes = 0;
  std::uint64_t waits = 0;      ///< for memory
  std::uint64_t held_back = 0;  ///< launches and batches
  double waited_seconds = 0;    ///< all of those

  /// Of what Weir could have served; nothing where there was no such memory.
  [[nodiscard]] std::optional<double> served_share() const;
};
/// Throws Error where it names no device, nlohmann's exception where it is something else.
[[nodiscard]] SwapInFigures read_summary(const nlohmann::json& summary);

struct ProgramRun {
  std::string setup;
  std::optional<int> exit_code;  ///< nothing: it was not started
  bool stopped = false;
  std::string said;  ///< the last line on standard error
  // What it printed itself:
  std::string framework;
  std::string result;                ///< `finished`, `out of memory`; nothing where it did not say
  std::vector<std::string> losses;   ///< hexadecimal: their bits
  std::optional<double> seconds;     ///< of the steps that are timed
  std::optional<double> peak_bytes;  ///< as the framework counts what it reserved
  std::optional<SwapInFigures> weir;
  std::string unreadable;  ///< why there is no `weir` of a run with it

  /// Of Weir's summary; nothing where there is none.
  [[nodiscard]] std::optional<double> served_share() const;
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool ran_out() const;
  /// `finished`, `out of memory`, `stopped at its limit`, `failed (exit 1): …`, `not run: …`.
  [[nodiscard]] std::string outcome() const;
};

struct ProgramFigures {
  std::string name;
  std::string left_out;  ///< why none of it could be run
  std::vector<ProgramRun> runs;

  /// The first of that setup; null where there is none.
  [[nodiscard]] const ProgramRun* find(std::string_view setup) const;
};
[[nodiscard]] std::vector<ProgramFigures> read_programs(const nlohmann::json& figures);
/// Whether the call that wrote these figures was to run it. A document that names no plan is of
/// all.
[[nodiscard]] bool is_planned(const nlohmann::json& figures, std::string_view name);
/// Null where it is not among them.
[[nodiscard]] const ProgramFigures* find_program(const std::vector<ProgramFigures>& programs,
                                                 std::string_view name);

/// Whether a setup goes with Weir.
[[nodiscard]] bool with_weir(std::string_view setup);
/// The setup without Weir that one with it is compared with: `plain_async` of `weir_async`.
[[nodiscard]] std::string without_weir(std::string_view setup);
/// For people: `with Weir, in stream order`.
[[nodiscard]] std::string setup_title(std::string_view setup);

}  // namespace weir::gpu_check
