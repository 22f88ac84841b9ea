#pragma once

// `weir` as a process, for tests of everything around the library: the preloaded one does nothing.

#include <cstdlib>
#include <string>
#include <vector>

#include "preload/sample_summary.hpp"
#include "support/child_process.hpp"
#include "support/sanitized.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {

/// `run [FLAGS] -- PROGRAM WORDS`.
[[nodiscard]] inline Words run_words(Words flags, const Words& words,
                                     const std::string& program = FAKE_PROGRAM) {
  flags.insert(flags.begin(), "run");
  flags.insert(flags.end(), {"--", program});
  flags.insert(flags.end(), words.begin(), words.end());
  return flags;
}

/// The file that FAKE_PROGRAM's summary is made of. The program has no library of ours in it, since
/// with CUDA's runtime in it `weir run` would tell it nothing of frameworks.
[[nodiscard]] inline std::string fake_summary() {
  static const TemporaryDirectory kFolder;
  static const std::string kFile = [] {
    const std::string file = kFolder.file("summary.json");
    write_file(file, to_json(sample_summary()));
    return file;
  }();
  return kFile;
}

/// The environment of every `weir run` of these tests; the test's own variables precede it.
[[nodiscard]] inline Variables with_library(Variables variables) {
  variables.emplace("WEIR_LIBRARY", FAKE_LIBRARY);
  variables.emplace("PATH", "/usr/bin:/bin");
  variables.emplace("FAKE_SUMMARY", fake_summary());
  // The sanitizer must be the first library, and the preloaded one would be.
  const char* const asan = std::getenv("ASAN_OPTIONS");
  variables["ASAN_OPTIONS"] =
      std::string(asan != nullptr ? asan : "") + ":verify_asan_link_order=0";
  return variables;
}

/// Starts `weir`, and waits for its end.
[[nodiscard]] inline Finished run_weir(const Words& words, Variables variables = {}) {
  return ChildProcess(words, {.environment = with_library(std::move(variables))}).wait();
}

/// The beginning of the allocator's line, which `weir run` prints first.
inline constexpr const char* kAllocatorLine = "weir: allocator: ";

/// Standard error of `weir run` after the allocator's line, which must come first and once.
[[nodiscard]] inline std::string after_allocator(const std::string& err) {
#if WEIR_TEST_SANITIZED
  // There the test's program has CUDA's runtime in it, and is told nothing of frameworks.
  if (!err.starts_with(kAllocatorLine)) return err;
#endif
  const std::size_t second = err.find(kAllocatorLine, 1);
  if (!err.starts_with(kAllocatorLine) || second != std::string::npos) {
    return "the line of the allocator is not there once and first: " + err;
  }
  std::size_t end = err.find('\n') + 1;
  while (err.compare(end, 6, "      ") == 0) end = err.find('\n', end) + 1;  // it was wrapped
  return err.substr(end);
}

}  // namespace weir::testing
