#pragma once

// A variable of a program that is to be started.

#include <string>

namespace weir::cli {

struct Variable {
  std::string name;
  std::string value;

  friend bool operator==(const Variable&, const Variable&) = default;
};

}  // namespace weir::cli
