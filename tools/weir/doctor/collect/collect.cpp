// All groups of facts, each on its own.

#include "tools/weir/doctor/collect/collect.hpp"

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <functional>
#include <new>
#include <system_error>
#include <vector>

namespace weir::cli::doctor {
namespace {

namespace fs = std::filesystem;

/// How many more files a group opens at a time, if it reads files, or if it starts processes too.
constexpr int kReading = 1;
constexpr int kStarting = 8;

/// Throws std::system_error if this process may not open so many more files. A reader would take
/// what it cannot open for missing.
void require_files(int count) {
  std::vector<int> open;
  int error = 0;
  for (int i = 0; i < count && error == 0; ++i) {
    const int file = dup(STDERR_FILENO);
    error = file < 0 ? errno : 0;
    if (file >= 0) open.push_back(file);
  }
  for (const int file : open) close(file);
  if (error != EMFILE && error != ENFILE) return;
  throw std::system_error(error, std::generic_category(),
                          "that takes " + std::to_string(count) + " more open files, and " +
                              std::to_string(open.size()) + " may be opened");
}

}  // namespace

Lack lack_in(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return Lack::kMemory;
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system == nullptr) return Lack::kUnknown;
  if (system->code() == std::errc::too_many_files_open ||
      system->code() == std::errc::too_many_files_open_in_system) {
    return Lack::kFiles;
  }
  if (system->code() == std::errc::not_enough_memory) return Lack::kMemory;
  // Of the calls here only fork says it.
  if (system->code() == std::errc::resource_unavailable_try_again) return Lack::kProcesses;
  return Lack::kUnknown;
}

Facts collect(const CollectOptions& options) {
  Facts facts;
  // The other groups are collected all the same.
  const auto attempt = [&facts](Group group, int files,
                                const std::function<void()>& collect_group) {
    try {
      require_files(files);
      collect_group();
    } catch (const std::exception& error) {
      facts.missed.push_back({.group = group, .why = error.what(), .lack = lack_in(error)});
    }
  };
  std::error_code error;
  facts.places = collect_places(fs::read_symlink("/proc/self/exe", error).string());
  attempt(Group::kSystem, kReading, [&] { facts.system = collect_system(options); });
  attempt(Group::kLibrary, kStarting, [&] { facts.library = collect_library(options); });
  const std::string library = facts.library.problem.empty() ? facts.library.path : "";
  attempt(Group::kPython, kStarting, [&] { facts.python = collect_python(options, library); });
  attempt(Group::kDriver, kStarting,
          [&] { facts.driver = collect_driver(options, facts.python.runtimes); });
  const Variables variables = collect_variables(environ);
  facts.settings.variables = variables;
  attempt(Group::kSettings, kReading, [&] { facts.settings = collect_settings(variables); });
  facts.settings.devices = facts.driver.driver.devices;
  attempt(Group::kLimits, kStarting, [&] { facts.limits = collect_limits(options); });
  facts.limits.memory = facts.system.memory;
  attempt(Group::kEnvironment, kReading,
          [&] { facts.environment = collect_environment(variables); });
  return facts;
}

}  // namespace weir::cli::doctor
