#pragma once

// `weir` as a process. The library that it preloads is a stand-in that does nothing: what is tested
// here is all around it.

#include <cstdlib>
#include <string>
#include <vector>

#include "trainer/child_process.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {

using Words = std::vector<std::string>;

/// `run [FLAGS] -- PROGRAM WORDS`.
[[nodiscard]] inline Words run_words(Words flags, const Words& words,
                                     const std::string& program = FAKE_PROGRAM) {
  flags.insert(flags.begin(), "run");
  flags.insert(flags.end(), {"--", program});
  flags.insert(flags.end(), words.begin(), words.end());
  return flags;
}

/// What every `weir run` of these tests has in its environment; the test's own comes before it.
[[nodiscard]] inline Variables with_library(Variables variables) {
  variables.emplace("WEIR_LIBRARY", FAKE_LIBRARY);
  variables.emplace("PATH", "/usr/bin:/bin");
  // The sanitizer wants to be the first library, which is what is preloaded.
  const char* const asan = std::getenv("ASAN_OPTIONS");
  variables["ASAN_OPTIONS"] =
      std::string(asan != nullptr ? asan : "") + ":verify_asan_link_order=0";
  return variables;
}

/// Starts `weir`, and waits for its end.
[[nodiscard]] inline Finished run_weir(const Words& words, Variables variables = {}) {
  return ChildProcess(words, {.environment = with_library(std::move(variables))}).wait();
}

/// What the default allocator's line begins with, and what `weir run` then prints before anything
/// else.
inline constexpr const char* kAllocatorLine = "weir: allocator framework: ";

/// Standard error of `weir run` behind the line of the allocator, which must be there, once and
/// first.
[[nodiscard]] inline std::string after_allocator(const std::string& err) {
  const std::size_t second = err.find(kAllocatorLine, 1);
  if (!err.starts_with(kAllocatorLine) || second != std::string::npos) {
    return "the line of the allocator is not there once and first: " + err;
  }
  return err.substr(err.find('\n') + 1);
}

}  // namespace weir::testing
