#pragma once

// Manual pages, in the language of man(7).

#include <string>
#include <vector>

#include "tools/program/command_line/command_text.hpp"

namespace weir {

struct ManualPage {
  std::string file;  ///< `weir-run.1`
  std::string text;
};

/// Returns a page for the program and one for each of its commands. The subcommands of a command
/// are on its page. `documents` is the folder of the pages in docs/.
[[nodiscard]] std::vector<ManualPage> manual_pages(const CommandText& program,
                                                   const std::string& documents);

}  // namespace weir
