#include <iterator>

#include "tools/weir/doctor/checks/checks.hpp"

namespace weir::cli::doctor {

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::vector<Finding> check_system(const SystemFacts& facts) {
  Findings found(Group::kSystem);
  found.ok("system", facts.os + ", " + facts.kernel);
  found.ok("machine",
           facts.libc + ", " + facts.machine + ", " + std::to_string(facts.cpus) + " cpus, " +
               format_bytes(facts.memory) + " of memory" +
               (facts.container.empty() ? "" : ", in a container (" + facts.container + ")"));
  return found.take();
}

std::vector<Finding> check_all(const Facts& facts) {
  const Environment environment = environment_of(facts.environment.variables);
  std::vector<Finding> all = check_system(facts.system);
  const auto append = [&all](std::vector<Finding> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  };
  append(check_driver(facts.driver, environment("CUDA_VISIBLE_DEVICES")));
  append(check_library(facts.library));
  append(check_python(facts.python, facts.driver.driver.version));
  append(check_settings(facts.settings));
  append(check_limits(facts.limits));
  append(check_environment(facts.environment));
  return all;
}

}  // namespace weir::cli::doctor
