#pragma once

// Takes out of a text what says whose machine it is. Pure.

#include <string>
#include <string_view>

namespace weir::cli::doctor {

struct Private {
  std::string home;  ///< the home folder
  std::string user;  ///< the user's name
  std::string host;  ///< the machine's name
};

/// Returns `text` with the home folder as `~`, and the folders named as the user or the machine as
/// `USER` and `HOST`. Names are replaced only as parts of paths: a user may be called `weir`, and
/// sentences use that word. `/usr` and `/opt` have no users' folders and stay.
[[nodiscard]] std::string redacted(std::string_view text, const Private& whose);

}  // namespace weir::cli::doctor
