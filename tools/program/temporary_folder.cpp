#include "tools/program/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "allocator/base/setting.hpp"

namespace weir {

TemporaryFolder::TemporaryFolder(const Environment& environment, std::string_view name) {
  Setting<std::string> parent = Setting<std::string>::by_default("/tmp");
  read_setting(parent, environment, {"TMPDIR"},
               [](std::string_view, std::string_view text) { return std::string(text); });
  std::error_code error;
  // Absolute: the directory may change before something is written here.
  path_ =
      (std::filesystem::absolute(parent.value, error) / (std::string(name) + ".XXXXXX")).string();
  if (mkdtemp(path_.data()) == nullptr) {
    const int code = errno;
    refuse(parent.source == "default" ? "the temporary folder" : parent.source, parent.value,
           "a folder in which files can be made (" + std::generic_category().message(code) + ")");
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace weir
