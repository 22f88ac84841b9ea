#pragma once

// An environment variable of a program to start.

#include <string>

namespace weir::cli {

struct Variable {
  std::string name;
  std::string value;

  friend bool operator==(const Variable&, const Variable&) = default;
};

}  // namespace weir::cli
