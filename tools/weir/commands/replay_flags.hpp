#pragma once

// The flags of `weir replay` and the request that they describe.

#include <optional>
#include <string>
#include <vector>

#include "tools/program/command_line.hpp"
#include "tools/replay/measure/pools.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::cli {

struct ReplayFlags {
  explicit ReplayFlags(CommandLine& line);

  std::vector<std::string> traces;
  std::string pool;
  std::string capacity;
  std::string budget = "100%";
  std::string upstream = "simulated";
  std::string lag = "0";
  std::string svg;
  std::string map;
  std::string json;
  bool no_search = false;
  bool recommend = false;
  bool summary = false;
  bool breakdown = false;
  bool wide = false;
};

struct ReplayRequest {
  std::vector<replay::PoolChoice> choices;
  replay::UpstreamKind upstream{};
  std::optional<Bytes> capacity;
  std::uint64_t lag = 0;
  std::size_t mapped = 0;  ///< the choice drawn by address
};

/// Throws UsageError with the flag, its value and what is allowed.
[[nodiscard]] ReplayRequest checked(const ReplayFlags& flags);

}  // namespace weir::cli
