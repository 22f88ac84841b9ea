#include "tools/weir/run/library.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "tools/preload/torch/plug_file.hpp"
#include "tools/weir/run/elf.hpp"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libweir.so";

fs::path folder_of_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string missing(const fs::path& built, const fs::path& installed) {
#ifdef WEIR_HAS_SWAP_IN
  return "the library to preload is neither '" + built.string() + "' nor '" + installed.string() +
         "': name it with WEIR_LIBRARY or weir run --library";
#else
  (void)built;
  (void)installed;
  return "this build has no library to preload, because it was built without CUDA's headers: name "
         "one with WEIR_LIBRARY or weir run --library";
#endif
}

/// Returns why the file cannot be preloaded; nothing if it can.
std::optional<std::string> unfit(const std::string& path) {
  constexpr const char* kWant = "a 64-bit shared library for this machine, ";
  std::error_code error;
  if (!fs::exists(path, error)) return "the path of libweir.so (there is no such file)";
  if (!fs::is_regular_file(path, error)) return std::string(kWant) + "and this is not a file";
  if (!read_front(path, 1)) return std::string(kWant) + "and this cannot be read";
  const std::optional<ElfFile> elf = read_elf(path);
  if (!elf) return std::string(kWant) + "and this is not an ELF file";
  if (!elf->whole) return std::string(kWant) + "and this is truncated";
  if (!elf->wide) return std::string(kWant) + "and this is a 32-bit library";
  if (!is_native(*elf)) return std::string(kWant) + "and this is for another";
  if (!elf->shared_object) return std::string(kWant) + "and this is a program";
  if (path.find_first_of(" :") != std::string::npos) {
    return "a path without spaces and colons, at which the loader would cut it";
  }
  return std::nullopt;
}

}  // namespace

Setting<std::string> named_library(const Environment& environment) {
  Setting<std::string> library;
  read_setting(library, environment, {"WEIR_LIBRARY"},
               [](std::string_view, std::string_view text) { return std::string(text); });
  return library;
}

Setting<std::string> locate_library(const Setting<std::string>& named) {
  if (!named.value.empty()) {
    std::error_code error;
    return {fs::absolute(named.value, error).string(), named.source};
  }
  const fs::path folder = folder_of_program();
  const fs::path built = (folder / "../preload" / kName).lexically_normal();
  const fs::path installed = (folder / WEIR_LIBDIR_FROM_BINDIR / "weir" / kName).lexically_normal();
  for (const fs::path& path : std::array{built, installed}) {
    std::error_code error;
    if (fs::exists(path, error)) return {path.string(), "the library"};
  }
  return {{}, missing(built, installed)};
}

std::string require_library(const Setting<std::string>& named) {
  const Setting<std::string> library = locate_library(named);
  if (library.value.empty()) throw UsageError(library.source);
  if (const auto why = unfit(library.value)) {
    refuse(library.source, named.value.empty() ? library.value : named.value, *why);
  }
  return library.value;
}

std::vector<std::string> plugs_beside(const std::string& library) {
  return preload::versions_of_plugs_in(fs::path(library).parent_path().string());
}

}  // namespace weir::cli
