#pragma once

// Prints findings: for people in lines of at most 80 columns, and as JSON. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/doctor/checks.hpp"

namespace weir::cli::doctor {

struct Private {
  std::vector<std::string> homes;  ///< the home folder, by HOME and by the list of users
  std::string user;                ///< the user's name
  std::string host;                ///< the machine's name
};

/// Returns `text` with the home folder as `~`, and the folders named as the user or the machine as
/// `USER` and `HOST`. Names are replaced only as parts of paths: a user may be called `weir`, and
/// sentences use that word. The system's folders, such as `/usr`, stay, also where one is the home
/// of a service's user.
[[nodiscard]] std::string redacted(std::string_view text, const Private& whose);

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
