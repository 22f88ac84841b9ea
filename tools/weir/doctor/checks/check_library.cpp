// libweir.so: whether it is there, belongs to this command, and can be preloaded.

#include "tools/weir/doctor/checks/checks.hpp"
#include "tools/weir/doctor/checks/places.hpp"

namespace weir::cli::doctor {
namespace {

const std::vector<Use>& by_the_library() {
  static const std::vector<Use> kByTheLibrary{Use::kRun, Use::kPlug};
  return kByTheLibrary;
}

void add_version(Findings& found, const LibraryFacts& facts) {
  const std::string again = facts.is_named
                                ? "unset WEIR_LIBRARY: the command takes the library beside it"
                                : "install Weir again";
  if (facts.version == facts.command_version) {
    found.ok("library", facts.path + ", version " + facts.version);
  } else if (facts.version.empty()) {
    found.warn("library", facts.path + " does not say its version: it is no build of this Weir",
               again);
  } else {
    found.fails(
        "library",
        facts.path + " is version " + facts.version + ", and this command " + facts.command_version,
        again, by_the_library());
  }
  if (facts.is_named && facts.version != facts.command_version) found.about("WEIR_LIBRARY");
}

void add_plugs(Findings& found, const LibraryFacts& facts, const Places& places) {
  if (facts.plugs.empty()) {
    found.warn("plugs", "no plug for PyTorch lies beside the library",
               build_a_plug(places) +
                   "; without it PyTorch keeps its own cache, and Weir serves the segments",
               {Use::kPlug});
    return;
  }
  std::string text;
  for (const std::string& version : facts.plugs) text += (text.empty() ? "" : ", ") + version;
  found.ok("plugs", "plugs for PyTorch " + text);
}

}  // namespace

std::vector<Finding> check_library(const LibraryFacts& facts, const Places& places) {
  Findings found(Group::kLibrary);
  if (!facts.problem.empty() && facts.is_named) {
    found.fails("library", facts.problem,
                "correct WEIR_LIBRARY, or unset it: the command takes the library beside it",
                by_the_library());
    found.about("WEIR_LIBRARY");
    return found.take();
  }
  if (!facts.problem.empty()) {
    found.fails("library", facts.problem,
                "install the wheel (in a clone: pip install .) or the .deb; "
                "WEIR_LIBRARY names another library",
                by_the_library());
    return found.take();
  }
  add_version(found, facts);
  add_trial(found, "preload", facts.trial);
  add_plugs(found, facts, places);
  return found.take();
}

}  // namespace weir::cli::doctor
