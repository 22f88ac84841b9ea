// libweir.so, and a trial with it.

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

TEST(DoctorLibrary, WhereItIsAndWhoseVersion) {
  const std::vector<Case> cases{
      {"none",
       [](Facts& facts) {
         facts.library = {};
         facts.library.problem = "there is none";
       },
       "library", State::kFails, "there is none", "WEIR_LIBRARY names another library", kSwapIn},
      {"another version", [](Facts& facts) { facts.library.version = "0.0.9"; }, "library",
       State::kFails, "is version 0.0.9, and this command 0.1.0", "install Weir again", kSwapIn},
      {"no version", [](Facts& facts) { facts.library.version.clear(); }, "library", State::kWarn,
       "does not say its version", "install Weir again", kNothing},
      {"another one that was named, of no version",
       [](Facts& facts) {
         facts.library.is_named = true;
         facts.library.version.clear();
       },
       "library", State::kWarn, "does not say its version", "unset WEIR_LIBRARY", kNothing},
      {"a name that is none",
       [](Facts& facts) {
         facts.library = {};
         facts.library.is_named = true;
         facts.library.problem = "WEIR_LIBRARY='/x' is not allowed: there is no such file";
       },
       "library", State::kFails, "WEIR_LIBRARY='/x' is not allowed",
       "correct WEIR_LIBRARY, or unset it", kSwapIn},
      {"good", [](Facts&) {}, "library", State::kOk, "/lib/weir/libweir.so, version 0.1.0", "",
       kNothing},
      {"no plugs", [](Facts& facts) { facts.library.plugs.clear(); }, "plugs", State::kWarn,
       "no plug for PyTorch lies beside the library", "packages.md", kPlugAlone},
      {"plugs", [](Facts&) {}, "plugs", State::kOk, "plugs for PyTorch 2.9, 2.15", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorLibrary, ATrialThatDidNotGoWellHasItsRemedy) {
  const std::vector<Case> cases{
      {"secure execution", [](Facts& facts) { facts.library.trial.end = Trial::End::kNotLoaded; },
       "preload", State::kFails, "cat ran without the library", "the loader ignores LD_PRELOAD",
       kSwapIn},
      {"noexec",
       [](Facts& facts) {
         facts.library.trial = {
             .end = Trial::End::kNotLoaded,
             .program = "cat",
             .message =
                 "object '/x/libweir.so' from LD_PRELOAD cannot be preloaded (failed to map "
                 "segment from shared object): ignored."};
       },
       "preload", State::kFails, "cat ran without the library: object '/x/libweir.so'", "noexec",
       kSwapIn},
      {"an older C library",
       [](Facts& facts) {
         facts.library.trial = {.end = Trial::End::kFailed,
                                .program = "cat",
                                .message = "cat: libc.so.6: version `GLIBC_2.38' not found"};
       },
       "preload", State::kFails, "cat fails with the library in it: cat: libc.so.6",
       "this system's C library", kSwapIn},
      {"another class",
       [](Facts& facts) {
         facts.library.trial = {.end = Trial::End::kNotLoaded,
                                .program = "cat",
                                .message = "cannot be preloaded (wrong ELF class: ELFCLASS64)"};
       },
       "preload", State::kFails, "wrong ELF class", "for this machine", kSwapIn},
      {"musl relocates",
       [](Facts& facts) {
         facts.library.trial = {.end = Trial::End::kFailed,
                                .program = "cat",
                                .message = "Error relocating /x/libweir.so: dlvsym: not found"};
       },
       "preload", State::kFails, "Error relocating", "musl", kSwapIn},
      {"musl loads",
       [](Facts& facts) {
         facts.library.trial = {.end = Trial::End::kFailed,
                                .program = "cat",
                                .message = "Error loading shared library ld-linux: No such file"};
       },
       "preload", State::kFails, "Error loading", "musl", kSwapIn},
      {"not readable",
       [](Facts& facts) {
         facts.library.trial = {.end = Trial::End::kNotLoaded,
                                .program = "cat",
                                .message = "cannot be preloaded (cannot open shared object file)"};
       },
       "preload", State::kFails, "cannot open shared object file", "let this user read", kSwapIn},
      {"a crash",
       [](Facts& facts) {
         facts.library.trial = {
             .end = Trial::End::kFailed, .program = "cat", .message = "it ends by signal 11"};
       },
       "preload", State::kFails, "cat fails with the library in it: it ends by signal 11",
       "LD_PRELOAD=$(weir info --library)", kSwapIn},
      {"a hang", [](Facts& facts) { facts.library.trial.end = Trial::End::kTimedOut; }, "preload",
       State::kFails, "cat does not end in time with the library in it", "by hand", kSwapIn},
      {"no program to try",
       [](Facts& facts) {
         facts.library.trial = {.end = Trial::End::kNotTried,
                                .program = "cat",
                                .message = "the program 'cat' is not in any folder of PATH"};
       },
       "preload", State::kWarn, "the library was not tried: the program 'cat'", "by hand",
       kNothing},
      {"good", [](Facts&) {}, "preload", State::kOk, "a trial: cat ran with the library in it", "",
       kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

}  // namespace
}  // namespace weir::cli::doctor::testing
