#pragma once

// Snapshots in files, and Python's view of them.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tools/timeline/snapshot/writer.hpp"

namespace weir::testing {

struct Ran {
  int status = 0;
  std::string output;  ///< both streams
};

/// `python3 WORDS`. It leaves no compiled files behind.
inline Ran run_python(const std::string& words) {
  Ran ran;
  std::FILE* pipe = ::popen(("python3 -B " + words + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {.status = -1, .output = "popen failed"};
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
    ran.output.append(part.data(), got);
  }
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

inline bool has_python() { return run_python("--version").status == 0; }

/// The history of a snapshot, once the check has passed.
inline std::vector<nlohmann::json> checked_snapshot(const std::string& path) {
  const Ran ran = run_python(WEIR_SNAPSHOT_TESTS "/check_snapshot.py " + path);
  EXPECT_EQ(ran.status, 0) << ran.output;
  std::vector<nlohmann::json> entries;
  std::istringstream lines(ran.output);
  for (std::string line; std::getline(lines, line);) {
    entries.push_back(nlohmann::json::parse(line, nullptr, false));
  }
  return entries;
}

/// The result of PyTorch's own reader for a snapshot; empty without PyTorch.
inline std::optional<nlohmann::json> viewed_snapshot(const std::string& path) {
  constexpr int kLeftOut = 77;
  const Ran ran = run_python(WEIR_SNAPSHOT_TESTS "/check_viewer.py " + path);
  if (ran.status == kLeftOut) return std::nullopt;
  EXPECT_EQ(ran.status, 0) << ran.output;
  return nlohmann::json::parse(ran.output, nullptr, false);
}

/// A snapshot in a file of its own.
class SnapshotFile {
 public:
  explicit SnapshotFile(const timeline::Timeline& timeline)
      : path_(std::filesystem::temp_directory_path() /
              ("weir_snapshot_" + std::to_string(::getpid()) + ".pickle")) {
    std::ofstream(path_, std::ios::binary) << timeline::to_snapshot(timeline);
  }
  ~SnapshotFile() { std::filesystem::remove(path_); }
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::vector<nlohmann::json> checked() const { return checked_snapshot(path()); }

 private:
  std::filesystem::path path_;
};

}  // namespace weir::testing
