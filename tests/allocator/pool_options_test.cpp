#include "allocator/pool_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_kind.hpp"
#include "pool_fixture.hpp"
#include "support/environment.hpp"
#include "support/message_of.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::environment_of;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;
using Variables = std::map<std::string, std::string>;

PoolOptions read(const Variables& variables, MxnetContext context = MxnetContext::kGpu) {
  return PoolOptions::from_environment(context, environment_of(variables));
}

TEST(PoolOptions, DefaultsAreMxnetsButForTheKind) {
  const PoolOptions options = read({});
  EXPECT_EQ(options.kind.value, PoolKind::kRound);
  EXPECT_EQ(options.page.value, kib(4));
  EXPECT_EQ(options.large_round.value, mib(2));
  EXPECT_EQ(options.cutoff.value, 24U);
  EXPECT_EQ(options.budget.value, (BudgetRequest{.percent = 95}));
  for (const auto& source : {options.kind.source, options.page.source, options.large_round.source,
                             options.cutoff.source, options.budget.source}) {
    EXPECT_EQ(source, "default");
  }
  EXPECT_NO_THROW(options.validate());
}

TEST(PoolOptions, ASegmentIsAtMostItsShareOfTheBudgetInForce) {
  PoolOptions options;
  EXPECT_EQ(options.segment_room(mib(50), mib(64)), mib(50));
  options.segment_share = 16;
  EXPECT_EQ(options.segment_room(mib(50), mib(64)), mib(4));
  EXPECT_EQ(options.segment_room(mib(50), gib(64)), mib(50));
  EXPECT_EQ(options.segment_room(mib(3), mib(64)), mib(3));
  EXPECT_EQ(options.segment_room({}, mib(64)), Bytes{});
  EXPECT_EQ(options.segment_room(mib(1), mib(1)), kib(64));
  EXPECT_NO_THROW(options.validate());
  options.segment_share = 0;
  EXPECT_THAT(message_of<UsageError>([&] { options.validate(); }), HasSubstr("share"));
}

TEST(PoolOptions, ReadsOurVariables) {
  const PoolOptions options = read({{"WEIR_POOL", "naive"},
                                    {"WEIR_POOL_PAGE_SIZE", "8KiB"},
                                    {"WEIR_POOL_LARGE_ROUND_SIZE", "1048576"},
                                    {"WEIR_POOL_LINEAR_CUTOFF", "20"},
                                    {"WEIR_BUDGET", "6GiB"}});
  EXPECT_EQ(options.kind.value, PoolKind::kNaive);
  EXPECT_EQ(options.page.value, kib(8));
  EXPECT_EQ(options.large_round.value, mib(1));
  EXPECT_EQ(options.cutoff.value, 20U);
  EXPECT_EQ(options.budget.value, (BudgetRequest{.bytes = gib(6)}));
  EXPECT_EQ(options.cutoff.source, "WEIR_POOL_LINEAR_CUTOFF");
  EXPECT_EQ(options.budget.source, "WEIR_BUDGET");
}

TEST(PoolOptions, TakesMxnetsSettingsVerbatim) {
  const PoolOptions options = read({{"MXNET_GPU_MEM_POOL_TYPE", "Round"},
                                    {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "28"},
                                    {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "4194304"},
                                    {"MXNET_GPU_MEM_POOL_RESERVE", "10"}});
  EXPECT_EQ(options.kind.value, PoolKind::kRound);
  EXPECT_EQ(options.kind.source, "MXNET_GPU_MEM_POOL_TYPE");
  EXPECT_EQ(options.cutoff.value, 28U);
  EXPECT_EQ(options.large_round.value, mib(4));
  EXPECT_EQ(options.budget.value, (BudgetRequest{.percent = 90}));
  EXPECT_EQ(options.budget.source, "MXNET_GPU_MEM_POOL_RESERVE");
  EXPECT_NO_THROW(options.validate());
  EXPECT_EQ(options.block_size(mib(256)), mib(256));
  EXPECT_EQ(options.block_size(mib(257)), mib(512));
  EXPECT_EQ(read({{"MXNET_GPU_MEM_POOL_TYPE", "Naive"}}).kind.value, PoolKind::kNaive);
  EXPECT_EQ(read({{"MXNET_GPU_MEM_POOL_TYPE", "Unpooled"}}).kind.value, PoolKind::kUnpooled);
}

TEST(PoolOptions, TakesBothOfMxnetsNamesForThePage) {
  EXPECT_EQ(read({{"MXNET_GPU_MEM_POOL_PAGE_SIZE", "8192"}}).page.value, kib(8));
  EXPECT_EQ(read({{"MXNET_GPU_POOL_PAGE_SIZE", "16384"}}).page.value, kib(16));
}

TEST(PoolOptions, OursBeatsMxnetsNameForTheSameThing) {
  const PoolOptions options = read({{"WEIR_POOL", "unpooled"},
                                    {"MXNET_GPU_MEM_POOL_TYPE", "Naive"},
                                    {"WEIR_POOL_PAGE_SIZE", "64"},
                                    {"MXNET_GPU_MEM_POOL_PAGE_SIZE", "8192"},
                                    {"WEIR_POOL_LARGE_ROUND_SIZE", "3"},
                                    {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "5"},
                                    {"WEIR_POOL_LINEAR_CUTOFF", "21"},
                                    {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "28"},
                                    {"WEIR_BUDGET", "80%"},
                                    {"MXNET_GPU_MEM_POOL_RESERVE", "10"}});
  EXPECT_EQ(options.kind.value, PoolKind::kUnpooled);
  EXPECT_EQ(options.page.value, Bytes{64});
  EXPECT_EQ(options.large_round.value, Bytes{3});
  EXPECT_EQ(options.cutoff.value, 21U);
  EXPECT_EQ(options.budget.value, (BudgetRequest{.percent = 80}));
}

TEST(PoolOptions, AnEmptyVariableIsNotSet) {
  const PoolOptions options = read({{"WEIR_POOL", ""}, {"MXNET_GPU_MEM_POOL_TYPE", "Naive"}});
  EXPECT_EQ(options.kind.value, PoolKind::kNaive);
}

TEST(PoolOptions, ACpuDeviceReadsMxnetsCpuVariablesFirst) {
  const Variables both{{"MXNET_CPU_MEM_POOL_TYPE", "Naive"},
                       {"MXNET_GPU_MEM_POOL_TYPE", "Unpooled"},
                       {"MXNET_CPU_POOL_PAGE_SIZE", "64"},
                       {"MXNET_GPU_MEM_POOL_PAGE_SIZE", "128"},
                       {"MXNET_CPU_MEM_LARGE_ALLOC_ROUND_SIZE", "1"},
                       {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "2"},
                       {"MXNET_CPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "22"},
                       {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "23"},
                       {"MXNET_CPU_MEM_POOL_RESERVE", "1"},
                       {"MXNET_GPU_MEM_POOL_RESERVE", "2"}};
  const PoolOptions cpu = read(both, MxnetContext::kCpu);
  EXPECT_EQ(cpu.kind.value, PoolKind::kNaive);
  EXPECT_EQ(cpu.page.value, Bytes{64});
  EXPECT_EQ(cpu.large_round.value, Bytes{1});
  EXPECT_EQ(cpu.cutoff.value, 22U);
  EXPECT_EQ(cpu.budget.value.percent, 99);
  const PoolOptions gpu = read(both, MxnetContext::kGpu);
  EXPECT_EQ(gpu.kind.value, PoolKind::kUnpooled);
  EXPECT_EQ(gpu.page.value, Bytes{128});
  EXPECT_EQ(gpu.large_round.value, Bytes{2});
  EXPECT_EQ(gpu.cutoff.value, 23U);
  EXPECT_EQ(gpu.budget.value.percent, 98);
}

TEST(PoolOptions, ACpuDeviceStandsInForAGpuAndReadsItsVariablesToo) {
  const PoolOptions options =
      read({{"MXNET_GPU_MEM_POOL_TYPE", "Naive"}, {"MXNET_GPU_MEM_POOL_RESERVE", "30"}},
           MxnetContext::kCpu);
  EXPECT_EQ(options.kind.value, PoolKind::kNaive);
  EXPECT_EQ(options.budget.value.percent, 70);
}

TEST(PoolOptions, ABadVariableIsRefusedWithItsNameItsValueAndWhatIsAllowed) {
  struct Bad {
    std::string variable;
    std::string value;
    std::string allowed;
  };
  const std::string kinds = "unpooled, naive, round, best_fit or paged";
  const std::string page = "32 or more";
  const std::vector<Bad> bad{{"WEIR_POOL", "best", kinds},
                             {"WEIR_POOL", "round ", kinds},
                             {"MXNET_GPU_MEM_POOL_TYPE", "Buddy", kinds},
                             {"WEIR_POOL_PAGE_SIZE", "31", page},
                             {"WEIR_POOL_PAGE_SIZE", "-4096", page},
                             {"WEIR_POOL_PAGE_SIZE", "big", page},
                             {"MXNET_GPU_MEM_POOL_PAGE_SIZE", "0", page},
                             {"MXNET_GPU_POOL_PAGE_SIZE", "16", page},
                             {"WEIR_POOL_LARGE_ROUND_SIZE", "0", "above zero"},
                             {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "-1", "above zero"},
                             {"WEIR_POOL_LINEAR_CUTOFF", "19", "20 to 34"},
                             {"WEIR_POOL_LINEAR_CUTOFF", "35", "20 to 34"},
                             {"WEIR_POOL_LINEAR_CUTOFF", "24.0", "20 to 34"},
                             {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "19", "20 to 34"},
                             {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "35", "20 to 34"},
                             {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "-24", "20 to 34"},
                             {"WEIR_BUDGET", "many", "such as 96MiB"},
                             {"MXNET_GPU_MEM_POOL_RESERVE", "100", "0 to 99"}};

  for (const Bad& b : bad) {
    EXPECT_THAT(message_of<UsageError>([&] {
                  (void)read({{b.variable, b.value}});
                }),
                AllOf(HasSubstr(b.variable + "='" + b.value + "'"), HasSubstr(b.allowed)));
  }
}

TEST(PoolOptions, SettingsThatDoNotGoTogetherAreRefusedWithTheirSource) {
  const auto message = [](const Variables& variables) {
    return message_of<UsageError>([&] { read(variables).validate(); });
  };
  EXPECT_THAT(message({{"MXNET_GPU_MEM_POOL_PAGE_SIZE", "5000"}}),
              AllOf(HasSubstr("MXNET_GPU_MEM_POOL_PAGE_SIZE"), HasSubstr("'5000'"),
                    HasSubstr("power of two")));
  EXPECT_THAT(
      message({{"WEIR_POOL_PAGE_SIZE", "2MiB"}, {"WEIR_POOL_LINEAR_CUTOFF", "20"}}),
      AllOf(HasSubstr("WEIR_POOL_PAGE_SIZE"), HasSubstr("at most 2^cutoff"), HasSubstr("20")));
  EXPECT_NO_THROW(read({{"WEIR_POOL", "naive"}, {"WEIR_POOL_PAGE_SIZE", "5000"}}).validate());
}

TEST(PoolOptions, WhatAProgramSetsIsCheckedToo) {
  const auto message = [](const PoolOptions& options) {
    return message_of<UsageError>([&] { options.validate(); });
  };
  PoolOptions options;
  options.cutoff = 19U;
  EXPECT_THAT(message(options), AllOf(HasSubstr("cutoff (program)='19'"), HasSubstr("20 to 34")));
  options.cutoff = 35U;
  EXPECT_THAT(message(options), HasSubstr("20 to 34"));
  options = {};
  options.page = Bytes{16};
  EXPECT_THAT(message(options), AllOf(HasSubstr("page (program)='16'"), HasSubstr("32")));
  options = {};
  options.large_round = Bytes{0};
  EXPECT_THAT(message(options), HasSubstr("above zero"));
}

TEST(PoolOptions, EveryKindIsReadBackAndAmongTheAllowedAndTheTestedOnes) {
  for (const PoolKind kind : pool_kinds()) {
    EXPECT_EQ(parse_pool_kind("WEIR_POOL", to_string(kind)), kind);
    EXPECT_THAT(std::string(allowed_kinds_of_pool()), HasSubstr(to_string(kind)));
    EXPECT_THAT(testing::kAllKinds, Contains(kind));
    EXPECT_THAT(testing::kAllUnits, Contains(Field(&testing::KindAndUnit::kind, kind)));
  }
}

TEST(PoolOptions, AutoIsRefusedAndWhereItIsAllowedIsSaid) {
  const std::string text =
      message_of<UsageError>([] { (void)parse_pool_kind("WEIR_POOL", "Auto"); });
  EXPECT_THAT(text, StartsWith("WEIR_POOL='Auto' is not allowed"));
  EXPECT_THAT(text, HasSubstr("best_fit or paged here; auto is for programs under libweir.so"));
}

}  // namespace
}  // namespace weir
