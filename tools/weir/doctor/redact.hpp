#pragma once

// Takes out of a text what says whose machine it is. Pure.

#include <string>
#include <string_view>
#include <vector>

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

}  // namespace weir::cli::doctor
