#include "tools/weir/run/program.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/weir/run/elf.hpp"

namespace weir::cli {
namespace {

constexpr std::string_view kBlank = " \t";

/// Removes the first word of `text` and returns it.
std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

/// Returns what `env` runs with `arguments`. Empty if that needs more than skipping variables and
/// the option that splits a line into words.
std::string_view run_by_env(std::string_view arguments) {
  for (;;) {
    const std::string_view word = take_word(arguments);
    if (word == "-S" || word.find('=') != std::string_view::npos) continue;
    return word.starts_with('-') ? std::string_view{} : word;
  }
}

}  // namespace

std::optional<Interpreter> interpreter_of(std::string_view front) {
  if (!front.starts_with("#!")) return std::nullopt;
  std::string_view line = front.substr(2, front.find('\n') - 2);
  const std::string_view path = take_word(line);
  if (path.substr(path.rfind('/') + 1) == "env") {
    if (const std::string_view name = run_by_env(line); !name.empty()) {
      return Interpreter{std::string(name), true};
    }
  }
  return Interpreter{std::string(path), false};
}

bool is_shell_script(std::string_view front) {
  if (front.starts_with("#!") || front.starts_with("\177ELF")) return false;
  return front.substr(0, front.find('\n')).find('\0') == std::string_view::npos;
}

namespace {

/// Reads 32 bits at `offset`, little-endian.
std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  }
  return number;
}

/// Returns the 32-bit words of each set in a revision; zero if unknown.
std::size_t words_of(std::uint64_t revision, std::size_t size) {
  if (revision == VFS_CAP_REVISION_1 && size == XATTR_CAPS_SZ_1) return VFS_CAP_U32_1;
  if (revision == VFS_CAP_REVISION_2 && size == XATTR_CAPS_SZ_2) return VFS_CAP_U32_2;
  if (revision == VFS_CAP_REVISION_3 && size == XATTR_CAPS_SZ_3) return VFS_CAP_U32_3;
  return 0;
}

FileRights rights_of(const std::string& path, const struct stat& status) {
  FileRights rights{
      .mode = status.st_mode, .owner = status.st_uid, .group = status.st_gid, .capabilities = {}};
  std::array<char, XATTR_CAPS_SZ> bytes{};
  const ssize_t size = getxattr(path.c_str(), "security.capability", bytes.data(), bytes.size());
  if (size > 0) rights.capabilities.assign(bytes.data(), static_cast<std::size_t>(size));
  struct statvfs mounted {};
  rights.ignored = statvfs(path.c_str(), &mounted) == 0 && (mounted.f_flag & ST_NOSUID) != 0;
  return rights;
}

std::uint64_t own_inheritable() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return 0;
  return data[0].inheritable | std::uint64_t{data[1].inheritable} << 32;
}

}  // namespace

bool grants_capabilities(std::string_view attribute, std::uint64_t inheritable) {
  if (attribute.size() < 4) return false;
  const std::uint64_t magic = number_at(attribute, 0);
  const std::size_t words = words_of(magic & VFS_CAP_REVISION_MASK, attribute.size());
  if (words == 0) return false;
  if ((magic & VFS_CAP_FLAGS_EFFECTIVE) != 0) return true;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t permitted = number_at(attribute, 4 + 8 * i);
    const std::uint64_t inherited = number_at(attribute, 8 + 8 * i) & inheritable >> (32 * i);
    if ((permitted | inherited) != 0) return true;
  }
  return false;
}

Secure secure_by(const FileRights& file, const OwnRights& own) {
  if (file.ignored) return Secure::kNo;
  if (!own.no_new_ones &&
      changes_identity(file.mode, file.owner, file.group, own.user, own.group)) {
    return Secure::kIdentity;
  }
  // Root has all capabilities, so the kernel does not start programs securely because of file
  // capabilities.
  const bool root = own.user == 0;
  return !root && grants_capabilities(file.capabilities, own.inheritable) ? Secure::kCapabilities
                                                                          : Secure::kNo;
}

Secure secure_by(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return Secure::kNo;
  return secure_by(rights_of(path, status),
                   {.user = getuid(),
                    .group = getgid(),
                    .inheritable = own_inheritable(),
                    .no_new_ones = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1});
}

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
