// The pages: installed with the program, or in the clone in whose build folder it lies.

#include <filesystem>

#include "tools/program/further_reading.hpp"
#include "tools/weir/doctor/collect/collect.hpp"

namespace weir::cli::doctor {

Places collect_places(const std::string& program) {
  const FoundPage page = find_page("docs/doctor.md", std::filesystem::path(program).parent_path());
  return {.pages = page.file.parent_path().string()};
}

}  // namespace weir::cli::doctor
