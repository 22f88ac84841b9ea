#include "tools/preload/settings/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/environment.hpp"
#include "support/message_of.hpp"

namespace weir::preload {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using weir::testing::environment_of;
using weir::testing::message_of;
using Variables = std::map<std::string, std::string>;

Settings settings_of(const Variables& variables) {
  return Settings::from_environment(environment_of(variables));
}

/// `name=value (source)` for each.
std::vector<std::string> described(const Variables& variables) {
  std::vector<std::string> lines;
  for (const SettingLine& line : describe(settings_of(variables))) {
    lines.push_back(std::string(line.name) + "=" + line.shown() + " (" + line.source + ")");
  }
  return lines;
}

TEST(PreloadSettings, DefaultsAreDescribedInTheOrderOfTheStruct) {
  EXPECT_THAT(described({}),
              ::testing::ElementsAre(
                  "pool=auto (default)", "pool-page-size=4096 (default)",
                  "pool-large-round-size=2097152 (default)", "pool-segment-size=67108864 (default)",
                  "budget=95% (default)", "alloc-log=none (default)", "policy=throttled (default)",
                  "run-ahead=auto (default)", "sync-free=0 (default)", "max-wait=10s (default)",
                  "spill=off (default)", "torch=plug (default)", "batch-range=none (default)",
                  "nvml=budget (default)", "summary=none (default)", "timeline=none (default)",
                  "log=warn (default)"));
}

TEST(PreloadSettings, EveryVariableIsReadAndNamedAsTheSource) {
  EXPECT_THAT(
      described({{"WEIR_POOL", "naive"},
                 {"WEIR_POOL_PAGE_SIZE", "8192"},
                 {"WEIR_POOL_LARGE_ROUND_SIZE", "4MiB"},
                 {"WEIR_BUDGET", "6GiB"},
                 {"WEIR_ALLOC_LOG", "a.log"},
                 {"WEIR_ALLOC_LOG_LIMIT", "2MiB"},
                 {"WEIR_POLICY", "backstop"},
                 {"WEIR_SYNC_FREE", "1"},
                 {"WEIR_MAX_WAIT", "250ms"},
                 {"WEIR_SPILL", "host"},
                 {"WEIR_TORCH", "off"},
                 {"WEIR_BATCH_RANGE", "step"},
                 {"WEIR_NVML", "real"},
                 {"WEIR_SUMMARY", "s.json"},
                 {"WEIR_TIMELINE", "t.json"},
                 {"WEIR_LOG", "debug"}}),
      ::testing::ElementsAre("pool=naive (WEIR_POOL)", "pool-page-size=8192 (WEIR_POOL_PAGE_SIZE)",
                             "pool-large-round-size=4194304 (WEIR_POOL_LARGE_ROUND_SIZE)",
                             "budget=6GiB (WEIR_BUDGET)", "alloc-log=a.log (WEIR_ALLOC_LOG)",
                             "alloc-log-limit=2MiB (WEIR_ALLOC_LOG_LIMIT)",
                             "policy=backstop (WEIR_POLICY)", "sync-free=1 (WEIR_SYNC_FREE)",
                             "max-wait=250ms (WEIR_MAX_WAIT)", "spill=host (WEIR_SPILL)",
                             "torch=off (WEIR_TORCH)", "batch-range=step (WEIR_BATCH_RANGE)",
                             "nvml=real (WEIR_NVML)", "summary=s.json (WEIR_SUMMARY)",
                             "timeline=t.json (WEIR_TIMELINE)", "log=debug (WEIR_LOG)"));
}

TEST(PreloadSettings, MxnetsVariablesForAGpuCountAndThoseForACpuDoNot) {
  const Settings settings = settings_of({{"MXNET_GPU_MEM_POOL_TYPE", "Unpooled"},
                                         {"MXNET_GPU_MEM_POOL_RESERVE", "20"},
                                         {"MXNET_CPU_MEM_POOL_TYPE", "Naive"}});
  EXPECT_EQ(settings.pool.kind.value, PoolKind::kUnpooled);
  EXPECT_EQ(settings.pool.budget.value.percent, 80);
}

TEST(PreloadSettings, AutoIsWhatHoldsWhereNoKindIsNamedAndCanBeSaid) {
  EXPECT_TRUE(settings_of({}).auto_pools.value);
  EXPECT_EQ(settings_of({}).pool.kind.value, PoolKind::kNaive);
  const Settings said = settings_of({{"WEIR_POOL", "AUTO"}, {"MXNET_GPU_MEM_POOL_TYPE", "Round"}});
  EXPECT_TRUE(said.auto_pools.value);
  EXPECT_EQ(said.auto_pools.source, "WEIR_POOL");
  EXPECT_EQ(said.pool.kind.value, PoolKind::kNaive);
  EXPECT_EQ(pool_name(said), "auto");
  for (const PoolKind kind : pool_kinds()) {
    const Settings named = settings_of({{"WEIR_POOL", std::string(to_string(kind)).c_str()}});
    EXPECT_FALSE(named.auto_pools.value);
    EXPECT_EQ(pool_name(named), to_string(kind));
  }
  EXPECT_FALSE(settings_of({{"MXNET_GPU_MEM_POOL_TYPE", "Round"}}).auto_pools.value);
}

TEST(PreloadSettings, MaxWaitIsDescribedAsItIsRead) {
  for (const char* text : {"10s", "1500ms", "7us", "3600s"}) {
    const Settings settings = settings_of({{"WEIR_MAX_WAIT", text}});
    for (const SettingLine& line : describe(settings)) {
      if (line.name != "max-wait") continue;
      EXPECT_EQ(line.value, text);
      EXPECT_EQ(parse_max_wait("", line.value), settings.max_wait.value);
    }
  }
}

TEST(PreloadSettings, EmptyVariablesAreNotSet) {
  const Settings settings = settings_of(
      {{"WEIR_SYNC_FREE", ""}, {"WEIR_BATCH_RANGE", ""}, {"WEIR_SUMMARY", ""}, {"WEIR_LOG", ""}});
  EXPECT_EQ(settings.sync_free.source, "default");
  EXPECT_EQ(settings.batch_range.source, "default");
  EXPECT_EQ(settings.summary.source, "default");
  EXPECT_EQ(settings.log.source, "default");
}

TEST(PreloadSettings, BadValuesAreRefusedInOneLineWithNameValueAndWhatIsAllowed) {
  struct Bad {
    const char* name;
    const char* value;
    const char* allowed;
  };
  for (const Bad& bad :
       {Bad{"WEIR_POOL", "slab", "auto, unpooled, naive, round, best_fit or paged"},
        Bad{"WEIR_SYNC_FREE", "yes", "0 or 1"}, Bad{"WEIR_SYNC_FREE", "01", "0 or 1"},
        Bad{"WEIR_MAX_WAIT", "10", "10s"}, Bad{"WEIR_MAX_WAIT", "0s", "above zero"},
        Bad{"WEIR_MAX_WAIT", "3601s", "3600s"}, Bad{"WEIR_MAX_WAIT", "-1s", "above zero"},
        Bad{"WEIR_SPILL", "disk", "off or host"}, Bad{"WEIR_SPILL", "1", "off or host"},
        Bad{"WEIR_TORCH", "on", "plug, async or off"},
        Bad{"WEIR_TORCH", "Plug", "plug, async or off"}, Bad{"WEIR_NVML", "none", "budget or real"},
        Bad{"WEIR_NVML", "Real", "budget or real"},
        Bad{"WEIR_LOG", "loud", "error, warn, info or debug"}}) {
    const std::string message = message_of<UsageError>([&] {
      (void)settings_of({{bad.name, bad.value}});
    });
    EXPECT_THAT(message, StartsWith(std::string(bad.name) + "='" + bad.value + "' is not allowed"));
    EXPECT_THAT(message, HasSubstr(bad.allowed));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace weir::preload
