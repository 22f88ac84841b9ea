#pragma once

// Prints findings: for people in lines of at most 80 columns, and as JSON. Pure.

#include <string>
#include <vector>

#include "tools/weir/doctor/facts.hpp"
#include "tools/weir/doctor/finding.hpp"
#include "tools/weir/doctor/redact.hpp"

namespace weir::cli::doctor {

struct Report {
  std::string version;  ///< of the command
  std::vector<Finding> findings;
  Variables variables;      ///< of Weir and MXNet
  Private whose;            ///< is left out of all that is printed
  bool has_torch = false;   ///< without PyTorch its plug is not mentioned
  bool is_standin = false;  ///< the driver is the tests' stand-in
};

/// Returns the lines for people. A word longer than a line, such as a path, is not broken.
[[nodiscard]] std::string report_text(const Report& report, bool in_colour);
/// Returns the same as JSON; docs/schemas/doctor.schema.json describes it.
[[nodiscard]] std::string report_json(const Report& report);
/// Returns `Works here: …; does not: ….`
[[nodiscard]] std::string summary(const Report& report);
/// Returns 1 if a check fails, otherwise 0.
[[nodiscard]] int exit_code(const Report& report);

}  // namespace weir::cli::doctor
