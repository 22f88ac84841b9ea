// The pages: installed with the program, or in the clone in whose build folder it lies.

#include <filesystem>

#include "tools/program/is_there.hpp"
#include "tools/weir/doctor/collect/collect.hpp"

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;

/// Whether it is a clone of Weir, and not another project that has our names for its pages.
bool is_clone(const fs::path& folder) {
  return is_there(folder / "docs/doctor.md") && is_there(folder / "tools/weir/doctor");
}

}  // namespace

Places collect_places(const std::string& program) {
  const fs::path folder = fs::path(program).parent_path();
  const fs::path installed = (folder / WEIR_DOCDIR_FROM_BINDIR / "docs").lexically_normal();
  if (is_there(installed / "doctor.md")) return {.pages = installed.string()};
  for (fs::path above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (is_clone(above)) return {.pages = (above / "docs").string()};
    // A wheel's are in share/ of its environment, the program in its site-packages.
    const fs::path shared = above / "share/doc/weir/docs";
    if (is_there(shared / "doctor.md")) return {.pages = shared.string()};
  }
  return {};
}

}  // namespace weir::cli::doctor
