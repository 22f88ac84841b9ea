#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "allocator/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/facts.hpp"

namespace weir::gpu_check {

int run_facts(int argc, char** argv) {
  if (argc > 1) throw UsageError("facts takes nothing");
  const Facts found = ask_facts();
  if (found.facts.empty()) {
    std::fprintf(stderr, "%s: no GPU: %s\n", argv[0], found.why.c_str());
    return 2;
  }
  nlohmann::json facts = nlohmann::json::array();
  for (const Fact& fact : found.facts) {
    facts.push_back({{"fact", fact.fact},
                     {"expected", fact.expected},
                     {"otherwise", fact.otherwise},
                     {"answer", fact.answer},
                     {"answered", fact.answered}});
  }
  const std::string text = nlohmann::json{{"facts", std::move(facts)}}.dump(2) + "\n";
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace weir::gpu_check
