// Checks which functions a program gets from table_driver.cpp with Weir in front: for each look-up
// the hook for the driver's result, if there is one, otherwise the driver's own function. The
// look-ups are all that <cudaTypedefs.h> allows (`all`), or those of a file. Returns 0, or 1 with
// lines about the differences.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/preload/loader/libraries/table_driver.hpp"
#include "tools/preload/hooks/hook_list.hpp"

namespace {

using weir::preload::Hook;

struct LookUp {
  std::string base;
  int version;
  cuuint64_t flags;
};

struct Driver {
  decltype(&weir_table_answer) answer;
  decltype(&weir_table_forms) forms;
  CUresult (*get)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
};

Driver driver_of(void* library) {
  return {reinterpret_cast<decltype(Driver::answer)>(dlsym(library, "weir_table_answer")),
          reinterpret_cast<decltype(Driver::forms)>(dlsym(library, "weir_table_forms")),
          reinterpret_cast<decltype(Driver::get)>(dlsym(library, "cuGetProcAddress_v2"))};
}

/// The version of a hook's per-thread form: the types do not have one for every version.
int per_thread_version(const Driver& driver, const Hook& hook) {
  std::size_t count = 0;
  const TableForm* const forms = driver.forms(&count);
  int first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TableForm& form = forms[i];
    if (!form.per_thread || std::strcmp(form.base, hook.base) != 0) continue;
    if (form.version >= hook.since && (first == 0 || form.version < first)) first = form.version;
  }
  return first;
}

/// The hook for a form of a function; null if there is none.
const char* hook_of(const Driver& driver, const TableForm& form) {
  for (const Hook& hook : weir::preload::hooks()) {
    if (std::strcmp(form.base, hook.base) != 0) continue;
    if (!form.per_thread && form.version == hook.since && hook.symbol != nullptr) {
      return hook.symbol;
    }
    if (form.per_thread && hook.per_thread != nullptr &&
        form.version == per_thread_version(driver, hook)) {
      return hook.per_thread;
    }
  }
  return nullptr;
}

/// Each form at its own version and at a newer one, for each kind of default stream.
std::vector<LookUp> all_look_ups(const Driver& driver, int newest) {
  std::size_t count = 0;
  const TableForm* const forms = driver.forms(&count);
  std::vector<LookUp> all;
  for (std::size_t i = 0; i < count; ++i) {
    for (const int version : {forms[i].version, newest}) {
      for (const cuuint64_t flags : {0U, 1U, 2U}) all.push_back({forms[i].base, version, flags});
    }
  }
  return all;
}

std::vector<LookUp> look_ups_of(const char* path) {
  std::ifstream file(path);
  std::vector<LookUp> all;
  for (LookUp one; file >> one.base >> one.version >> one.flags;) all.push_back(one);
  return all;
}

/// The error in the result of a look-up; empty if it is right. `swapped` counts.
std::string fault_of(const Driver& driver, const LookUp& asked, int& swapped) {
  const TableForm* const form = driver.answer(asked.base.c_str(), asked.version, asked.flags);
  void* found = nullptr;
  (void)driver.get(asked.base.c_str(), &found, asked.version, asked.flags, nullptr);
  if (form == nullptr) return found == nullptr ? "" : "is found, and the driver has none";
  const char* const hook = hook_of(driver, *form);
  if (hook == nullptr) return found == form->function ? "" : "is not the driver's";
  if (found != dlvsym(RTLD_DEFAULT, hook, "WEIR_1")) return std::string("is not ") + hook;
  std::printf("swapped %s\n", form->base);
  ++swapped;
  return "";
}

}  // namespace

int main(int count, char** arguments) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const Driver driver = library != nullptr ? driver_of(library) : Driver{};
  if (count != 2 || driver.answer == nullptr || driver.forms == nullptr || driver.get == nullptr) {
    std::printf("not so: there are look-ups, and a driver of tables\n");
    return 1;
  }
  const bool all = std::strcmp(arguments[1], "all") == 0;
  const std::vector<LookUp> look_ups =
      all ? all_look_ups(driver, std::atoi(std::getenv("LOADER_DRIVER_VERSION")))
          : look_ups_of(arguments[1]);
  int faults = 0;
  int swapped[2] = {0, 0};
  for (const LookUp& asked : look_ups) {
    const bool per_thread = asked.flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const std::string fault = fault_of(driver, asked, swapped[per_thread ? 1 : 0]);
    if (fault.empty()) continue;
    std::printf("not so: %s %d with flags %llu %s\n", asked.base.c_str(), asked.version,
                static_cast<unsigned long long>(asked.flags), fault.c_str());
    ++faults;
  }
  if (swapped[0] == 0 || swapped[1] == 0) {
    std::printf("not so: hooks of both forms were asked for\n");
    ++faults;
  }
  return faults == 0 ? 0 : 1;
}
