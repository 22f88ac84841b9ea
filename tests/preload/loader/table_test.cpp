// The table of hooks against the toolkit, and the library against the table.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "symbols.hpp"
#include "tools/preload/hooks/hook_list.hpp"

namespace weir::preload {
namespace {

using ::testing::Contains;

Names symbols_of_table() {
  Names names;
  for (const Hook& hook : hooks()) {
    if (hook.symbol != nullptr) names.insert(hook.symbol);
    if (hook.per_thread != nullptr) names.insert(hook.per_thread);
  }
  return names;
}

struct Version {
  std::string base;
  int version;
  bool operator==(const Version&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Version& one) {
  return out << one.base << " " << one.version;
}

std::vector<Version> versions_of_toolkit() {
#define PLAIN(base, version) Version{#base, version},
#define PER_THREAD(base, version, suffix)
  return {
#include "typedefs.inc"
  };
#undef PLAIN
#undef PER_THREAD
}

/// Versions of hooked functions that are newer than the latest hooked one.
std::vector<Version> newer_than_hooked(const std::vector<Version>& all) {
  std::vector<Version> newer;
  for (const Version& one : all) {
    int latest = 0;
    for (const Hook& hook : hooks()) {
      // A form for per-thread default streams alone has their version, not the function's.
      if (hook.symbol != nullptr && hook.base == one.base) latest = std::max(latest, hook.since);
    }
    if (latest != 0 && one.version > latest) newer.push_back(one);
  }
  return newer;
}

/// Those deliberately left to the driver: {{"base", version}}, with the reason above it.
const std::vector<Version> kLeftToTheDriver{};

TEST(Hooks, AreFunctionsOfTheDriver) {
  const std::string stub = WEIR_CUDA_STUB;
  if (stub.empty()) GTEST_SKIP() << "NOT CHECKED: this toolkit has no stubs/libcuda.so";
  const Names driver = exported_by(stub);
  ASSERT_THAT(driver, Contains("cuInit"));
  for (const std::string& name : symbols_of_table()) EXPECT_THAT(driver, Contains(name));
}

#ifdef WEIR_OLDER_DRIVER
// The tests on an older driver rely on this: it exports exactly what existed then.
TEST(Hooks, OfLaterVersionsAreMissingInTheOlderStandIn) {
  const Names driver = exported_by(WEIR_OLDER_DRIVER);
  int missing = 0;
  for (const Hook& hook : hooks()) {
    for (const char* symbol : {hook.symbol, hook.per_thread}) {
      if (symbol == nullptr) continue;
      EXPECT_EQ(driver.contains(symbol), hook.since <= 12040) << symbol;
      missing += driver.contains(symbol) ? 0 : 1;
    }
  }
  EXPECT_GT(missing, 0);
}
#endif

TEST(Hooks, AreTheLatestVersionsOrSayWhyNot) {
  const auto newer = newer_than_hooked(versions_of_toolkit());
  for (const Version& one : newer) EXPECT_THAT(kLeftToTheDriver, Contains(one));
  for (const Version& one : kLeftToTheDriver) EXPECT_THAT(newer, Contains(one)) << "is outdated";
}

TEST(Hooks, CheckFindsANewerVersion) {
  auto all = versions_of_toolkit();
  all.push_back({"cuMemAlloc", 99000});
  EXPECT_THAT(newer_than_hooked(all), Contains(Version{"cuMemAlloc", 99000}));
}

TEST(Hooks, AreLookedUpByOneNameOnce) {
  std::vector<std::pair<std::string, int>> seen;
  for (const Hook& hook : hooks()) {
    const std::pair one{std::string(hook.base), hook.since};
    EXPECT_EQ(std::count(seen.begin(), seen.end(), one), 0) << hook.base;
    seen.push_back(one);
  }
}

// A look-up takes the first that fits, and a driver that knows only the older ones returns the same
// function for the newer.
TEST(Hooks, OfOneNameStandFromTheOldestOn) {
  std::map<std::string, int> latest;
  for (const Hook& hook : hooks()) {
    int& before = latest[hook.base];
    EXPECT_GT(hook.since, before) << hook.base;
    before = hook.since;
  }
}

TEST(Hooks, AreAllThatTheLibraryLetsOutBesideItsBorders) {
  Names expected = symbols_of_table();
  for (const NvmlHook& hook : nvml_hooks()) expected.insert(hook.symbol);
  expected.insert({"dlsym", "InitializeInjectionNvtx2"});
  expected.insert("_ZN3c104cuda28device_count_ensure_non_zeroEv");  // PyTorch's
  expected.insert({"weir_timeline_start", "weir_timeline_stop", "weir_api_version",
                   "weir_batch_begin", "weir_batch_end", "weir_memory_info", "weir_set_budget",
                   "weir_settings", "weir_trim", "weir_allocate", "weir_blocks", "weir_free",
                   "weir_record_use", "weir_reset_peaks", "weir_set_fraction", "weir_allow_sharing",
                   "weir_share"});
  expected.insert({"weir_torch_alloc", "weir_torch_alloc_or_null", "weir_torch_base_alloc",
                   "weir_torch_free", "weir_torch_init", "weir_torch_memory_fraction",
                   "weir_torch_record_stream", "weir_torch_reset"});
  EXPECT_EQ(exported_by(WEIR_SWAP_IN), expected);
}

// A missing library would keep every program from starting.
TEST(Hooks, NeedTheCLibraryAlone) {
  Names needed = needed_by(WEIR_SWAP_IN);
  needed.erase("ld-linux-x86-64.so.2");  // the loader itself, which is loaded before
  EXPECT_EQ(needed, Names{"libc.so.6"});
}

// The program has one of its own, of another version perhaps.
TEST(Hooks, BringNoRuntimeOfCudas) {
  const Names defined = defined_in(WEIR_SWAP_IN);
  EXPECT_TRUE(defined.contains("cuMemAlloc_v2")) << "the names are not there to be seen";
  EXPECT_FALSE(defined.contains("cudaMalloc"));
}

}  // namespace
}  // namespace weir::preload
