#include "trainer/ranks/launch.hpp"

#include <optional>
#include <string_view>

#include "allocator/base/bytes.hpp"

namespace weir {
namespace {

constexpr std::uint64_t kMostRanks = 4096;  // for a message instead of a strange allocation
constexpr std::uint64_t kMostPort = 65535;

bool is_set(const char* text) { return text != nullptr && *text != '\0'; }

std::uint64_t number(const Environment& environment, const char* name, std::uint64_t least,
                     std::uint64_t most) {
  const char* const text = environment(name);
  const std::optional<std::uint64_t> value = parse_whole(text != nullptr ? text : "");
  if (!value || *value < least || *value > most) {
    refuse(name, text != nullptr ? text : "",
           "a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *value;
}

/// The names of one launcher's variables.
struct Names {
  Launcher launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
};
constexpr Names kLauncherVariables[]{
    {Launcher::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {Launcher::kMpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {Launcher::kTorchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK"},
};

void read_address(Launch& launch, const Environment& environment) {
  const char* const address = environment("MASTER_ADDR");
  if (!is_set(address)) refuse("MASTER_ADDR", "", "the machine of rank 0, as torchrun sets it");
  launch.address = address;
  const char* const taken = environment("TORCHELASTIC_USE_AGENT_STORE");
  const bool next = taken != nullptr && std::string_view(taken) == "True";
  const std::uint64_t port = number(environment, "MASTER_PORT", 1, kMostPort - (next ? 1 : 0));
  launch.port = static_cast<std::uint16_t>(port + (next ? 1 : 0));
}

}  // namespace

Launch find_launch(const Environment& environment) {
  for (const Names& names : kLauncherVariables) {
    if (!is_set(environment(names.rank)) || !is_set(environment(names.size))) continue;
    Launch launch{.launcher = names.launcher};
    launch.size = static_cast<int>(number(environment, names.size, 1, kMostRanks));
    launch.rank = static_cast<int>(
        number(environment, names.rank, 0, static_cast<std::uint64_t>(launch.size) - 1));
    launch.local_rank = launch.rank;
    if (is_set(environment(names.local_rank))) {
      launch.local_rank =
          static_cast<int>(number(environment, names.local_rank, 0, kMostRanks - 1));
    }
    if (names.launcher == Launcher::kTorchrun) read_address(launch, environment);
    return launch;
  }
  return {};
}

}  // namespace weir
