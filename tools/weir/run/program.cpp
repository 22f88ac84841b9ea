#include "tools/weir/run/program.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/weir/run/elf.hpp"
#include "tools/weir/run/privileges.hpp"
#include "tools/weir/run/script.hpp"

namespace weir::cli {
namespace {

/// The kernel's limit for scripts run by scripts.
constexpr int kDeepest = 5;
constexpr const char* kShell = "/bin/sh";

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw UsageError(what + " " + why);
}

std::string in_quotes(const std::string& path) { return "'" + path + "'"; }

/// Returns nothing for an executable file, otherwise what it is.
std::optional<std::string> not_executable(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return "cannot be run: " + std::generic_category().message(errno);
  }
  if (S_ISDIR(status.st_mode)) return "is a folder, not a program";
  if (!S_ISREG(status.st_mode)) return "is not a file that can be run";
  if (access(path.c_str(), X_OK) != 0) return "is not executable (chmod +x makes it so)";
  return std::nullopt;
}

void check_rights(const std::string& what, const std::string& path) {
  switch (secure_by(path)) {
    case Secure::kNo:
      return;
    case Secure::kIdentity:
      fail(what,
           "changes its user or group when it starts (set-user-id or set-group-id), and the loader "
           "ignores LD_PRELOAD there: let it start weir (as in sudo weir run), or run a copy of "
           "your own");
    case Secure::kCapabilities:
      fail(what,
           "has file capabilities, and the loader ignores LD_PRELOAD there: run a copy without "
           "them (cp leaves them out), or as root");
  }
}

void check_elf(const std::string& what, const std::string& path) {
  const std::optional<ElfFile> elf = read_elf(path);
  if (!elf) fail(what, "is neither an ELF program nor a script that names what runs it");
  if (!elf->whole) fail(what, "is damaged: its ELF headers are cut off");
  if (!elf->wide) {
    fail(what, "is a 32-bit program: CUDA, and the library to preload, have 64 bits");
  }
  if (!is_native(*elf)) fail(what, "is a program for another kind of machine");
  if (!elf->has_loader) fail(what, "is statically linked: nothing can be preloaded into it");
  check_rights(what, path);
}

std::string runs(const std::string& interpreter, const std::string& script) {
  return in_quotes(interpreter) + ", which runs the script " + in_quotes(script) + ",";
}

/// Returns the path of the script's interpreter.
std::string file_of(const Interpreter& interpreter, const std::string& script,
                    const Environment& environment) {
  if (interpreter.name.empty()) {
    fail(in_quotes(script), "is a script that names no interpreter after #!");
  }
  try {
    std::string file =
        interpreter.in_path ? find_program(interpreter.name, environment) : interpreter.name;
    if (const auto why = not_executable(file)) fail(in_quotes(file), *why);
    return file;
  } catch (const UsageError& error) {
    throw UsageError(std::string(error.what()) + "; the script " + in_quotes(script) + " names it");
  }
}

/// Protects a path like `-x/script`, which would be an option of the shell.
std::string as_operand(const std::string& path) {
  return path.starts_with('-') ? "./" + path : path;
}

/// `/bin/sh PATH ARGUMENTS`.
Started by_shell(const std::string& path, std::vector<std::string> words) {
  words.front() = as_operand(path);
  words.insert(words.begin(), kShell);
  return {kShell, std::move(words)};
}

}  // namespace

std::string find_program(const std::string& name, const Environment& environment) {
  if (name.empty()) fail("the program's name", "is empty");
  if (name.find('/') != std::string::npos) {
    if (const auto why = not_executable(name)) fail(in_quotes(name), *why);
    return name;
  }
  const char* variable = environment("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::string passed_over;
  for (bool more = true; more;) {
    const std::size_t end = folders.find(':');
    more = end != std::string_view::npos;
    std::string path(end == 0 || folders.empty() ? "." : folders.substr(0, end));
    path.append("/").append(name);
    if (more) folders.remove_prefix(end + 1);
    if (!not_executable(path)) return path;
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) passed_over = path;
  }
  if (!passed_over.empty()) fail(in_quotes(passed_over), *not_executable(passed_over));
  fail("the program " + in_quotes(name), "is not in any folder of PATH");
}

Started check_program(const std::string& path, std::vector<std::string> words,
                      const Environment& environment) {
  std::string what = in_quotes(path);
  std::string file = path;
  bool by_execvp = true;  // weir and env start programs this way; the kernel runs no other script
  for (int depth = 0; depth < kDeepest; ++depth) {
    constexpr std::size_t kFirstLine = 256;  // all that the kernel reads of it
    const std::optional<std::string> front = read_front(file, kFirstLine);
    if (!front) {
      // An executable file may be unreadable: then only the kernel knows what it is.
      check_rights(what, file);
      return {path, std::move(words)};
    }
    if (by_execvp && is_shell_script(*front)) {
      check_elf(runs(kShell, file), kShell);
      return depth == 0 ? by_shell(path, std::move(words)) : Started{path, std::move(words)};
    }
    const std::optional<Interpreter> interpreter = interpreter_of(*front);
    if (!interpreter) {
      check_elf(what, file);
      return {path, std::move(words)};
    }
    by_execvp = interpreter->in_path;
    const std::string script = std::exchange(file, file_of(*interpreter, file, environment));
    what = runs(file, script);
  }
  fail(in_quotes(path),
       "is a script whose interpreter is a script, which the kernel does not follow");
}

}  // namespace weir::cli
