// What became of a small program with the library in front of it.

#include <array>
#include <string_view>

#include "tools/weir/doctor/checks/checks.hpp"

namespace weir::cli::doctor {
namespace {

/// What the loader says, and what to do.
struct LoaderSays {
  std::string_view words;
  const char* remedy;
};
constexpr std::array kLoaderSays{
    LoaderSays{"failed to map segment",
               "put Weir on a file system that is not mounted noexec, or name a copy there with "
               "WEIR_LIBRARY"},
    LoaderSays{"GLIBC_", "use a build of Weir for this system's C library, or an older one"},
    LoaderSays{"wrong ELF class", "use a build of Weir for this machine"},
    LoaderSays{"Error relocating",
               "this program uses another C library (musl): run one that uses glibc"},
    LoaderSays{"Error loading shared library",
               "this program uses another C library (musl): run one that uses glibc"},
    LoaderSays{"cannot open shared object file",
               "let this user read the library and its folders, and check WEIR_LIBRARY"}};

const char* remedy_for(std::string_view message) {
  for (const LoaderSays& one : kLoaderSays) {
    if (message.find(one.words) != std::string_view::npos) return one.remedy;
  }
  return "run it by hand: LD_PRELOAD=$(weir info --library) PROGRAM";
}

std::string after_colon(const std::string& message) {
  return message.empty() ? "" : ": " + message;
}

}  // namespace

void add_trial(Findings& found, const std::string& check, const Trial& trial) {
  const std::vector<Use> broken{Use::kRun, Use::kPlug};
  switch (trial.end) {
    case Trial::End::kLoaded:
      found.ok(check, "a trial: " + trial.program + " ran with the library in it");
      return;
    case Trial::End::kNotLoaded:
      found.fails(check, trial.program + " ran without the library" + after_colon(trial.message),
                  trial.message.empty()
                      ? "start it without other rights than yours: the loader ignores LD_PRELOAD "
                        "for set-user-id programs and file capabilities"
                      : remedy_for(trial.message),
                  broken);
      return;
    case Trial::End::kFailed:
      found.fails(check,
                  trial.program + " fails with the library in it" + after_colon(trial.message),
                  remedy_for(trial.message), broken);
      return;
    case Trial::End::kTimedOut:
      found.fails(check, trial.program + " does not end in time with the library in it",
                  "run it by hand: LD_PRELOAD=$(weir info --library) PROGRAM", broken);
      return;
    case Trial::End::kRefused:
      found.fails(check, trial.message,
                  "run your programs by another one; weir doctor --python PATH checks it", broken);
      return;
    case Trial::End::kNotTried:
      break;
  }
  if (trial.message.empty()) return;  // there is nothing to try; another finding says why
  found.warn(check, "the library was not tried: " + trial.message,
             "try it by hand: LD_PRELOAD=$(weir info --library) PROGRAM");
}

}  // namespace weir::cli::doctor
