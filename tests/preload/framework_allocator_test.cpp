// Which allocator the frameworks use under `weir run`, and the line that reports it.

#include "tools/weir/run/framework_allocator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/environment.hpp"
#include "support/message_of.hpp"

namespace weir::cli {
namespace {

using preload::TorchWay;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using weir::testing::environment_of;
using weir::testing::message_of;

using Set = std::map<std::string, std::string>;

/// As `weir run --allocator` does where there is no plug.
FrameworkAllocator choose(AllocatorMode mode, const Set& set) {
  const Environment environment = environment_of(set);
  const TorchWay torch = torch_way({mode, "--allocator"}, environment).value;
  return choose_allocator({mode, torch, {}}, environment);
}
FrameworkAllocator framework(const Set& set) { return choose(AllocatorMode::kFramework, set); }
FrameworkAllocator async(const Set& set) { return choose(AllocatorMode::kAsync, set); }

auto of_name(const char* name) { return Field("name", &Variable::name, name); }

/// The features that PyTorch loses in stream order.
const char* const kLacks = "no torch.compile(mode=\"reduce-overhead\")";

TEST(FrameworkAllocator, TheDefaultSetsNothingWhateverIsSet) {
  for (const Set& set :
       {Set{}, Set{{"PYTORCH_ALLOC_CONF", "backend:native"}},
        Set{{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}}, Set{{"TF_GPU_ALLOCATOR", ""}},
        Set{{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"}}}) {
    EXPECT_THAT(framework(set).variables, IsEmpty());
  }
}

TEST(FrameworkAllocator, AsyncAsksEachFrameworkForStreamOrder) {
  EXPECT_THAT(async({}).variables,
              UnorderedElementsAre(Variable{"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"},
                                   Variable{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"},
                                   Variable{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
                                   Variable{"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
                                   Variable{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}));
}

TEST(FrameworkAllocator, WhatTheUserSetForAFrameworkStays) {
  for (const char* name :
       {"XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE", "TF_GPU_ALLOCATOR"}) {
    EXPECT_THAT(async({{name, "mine"}}).variables, Not(Contains(of_name(name))));
    EXPECT_THAT(async({{name, ""}}).variables, Contains(of_name(name)));
  }
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const auto variables = async({{name, "max_split_size_mb:64"}}).variables;
    EXPECT_THAT(variables, Not(Contains(of_name("PYTORCH_ALLOC_CONF"))));
    EXPECT_THAT(variables, Not(Contains(of_name("PYTORCH_CUDA_ALLOC_CONF"))));
  }
}

TEST(FrameworkAllocator, TheLineSaysWhatEachModeCostsAndGains) {
  EXPECT_EQ(
      framework({}).line,
      "allocator: frameworks keep their own caches, which Weir serves (--allocator async: each "
      "tensor)");
  EXPECT_EQ(
      async({}).line,
      "allocator: PyTorch, JAX and TensorFlow ask Weir for each tensor in stream "
      "order, and no cache keeps freed memory; PyTorch then has no "
      "torch.compile(mode=\"reduce-overhead\") or other CUDA-graph trees, no MemPool, no "
      "tensors shared between processes, no memory snapshot or history (--torch off has them)");
}

TEST(FrameworkAllocator, TheLineSaysWhatTheUsersVariablesHaveInForce) {
  const Set stream_order{{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}};
  EXPECT_THAT(
      framework(stream_order).line,
      AllOf(StartsWith("allocator: "),
            HasSubstr("; by PYTORCH_CUDA_ALLOC_CONF PyTorch requests each tensor in stream order"),
            HasSubstr(kLacks)));
  EXPECT_EQ(async(stream_order).line, async({}).line) << "as the mode has it";
  const Set newer{{"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"}};
  EXPECT_THAT(framework(newer).line, HasSubstr("by PYTORCH_ALLOC_CONF (read from 2.9 on) PyTorch"));
  const Set handles{{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}};
  for (const FrameworkAllocator& chosen : {framework(handles), async(handles)}) {
    EXPECT_THAT(chosen.line, AllOf(HasSubstr("by PYTORCH_CUDA_ALLOC_CONF PyTorch maps memory"),
                                   Not(HasSubstr(kLacks))));
  }
  EXPECT_THAT(framework({{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"}}).line,
              HasSubstr("; by XLA_PYTHON_CLIENT_ALLOCATOR JAX requests each tensor and keeps no"));
  EXPECT_THAT(framework({{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}}).line,
              HasSubstr("; by TF_GPU_ALLOCATOR TensorFlow requests each tensor in stream order"));
}

TEST(FrameworkAllocator, AsyncPromisesNothingOfAFrameworkThatTheUserSetOtherwise) {
  const std::string torch = async({{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"}}).line;
  EXPECT_THAT(torch, StartsWith("allocator: JAX and TensorFlow ask Weir"));
  EXPECT_THAT(torch, HasSubstr("; by PYTORCH_CUDA_ALLOC_CONF PyTorch keeps its own cache"));
  EXPECT_THAT(torch, Not(HasSubstr(kLacks)));
  EXPECT_THAT(async({{"PYTORCH_CUDA_ALLOC_CONF", "backend:native"},
                     {"XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"},
                     {"TF_GPU_ALLOCATOR", "mine"}})
                  .line,
              AllOf(StartsWith("allocator: nothing to set: your variables decide; "),
                    HasSubstr("JAX keeps its own cache"),
                    HasSubstr("by TF_GPU_ALLOCATOR TensorFlow allocates as this setting says")));
}

TEST(FrameworkAllocator, AVariableThatChangesNothingIsNotMentioned) {
  EXPECT_EQ(framework({{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"}}).line,
            framework({}).line);
  EXPECT_EQ(framework({{"XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"}}).line, framework({}).line);
}

TEST(FrameworkAllocator, TheLineRepeatsNoValue) {
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
                           "XLA_PYTHON_CLIENT_ALLOCATOR", "TF_GPU_ALLOCATOR"}) {
    for (const AllocatorMode mode : {AllocatorMode::kFramework, AllocatorMode::kAsync}) {
      const std::string line = choose(mode, {{name, "\n\033[2J"}}).line;
      EXPECT_EQ(line.find_first_of("\n\033"), std::string::npos) << line;
    }
  }
}

FrameworkAllocator with_plugs(AllocatorMode mode, TorchWay torch, const Set& set) {
  return choose_allocator({mode, torch, {"2.9", "2.15"}}, environment_of(set));
}

TEST(FrameworkAllocator, TheLineNamesTheVersionsThatHaveAPlug) {
  EXPECT_EQ(
      with_plugs(AllocatorMode::kFramework, TorchWay::kPlug, {}).line,
      "allocator: PyTorch 2.9 and 2.15 take each tensor from Weir (--torch off: PyTorch's own "
      "cache); other versions and frameworks keep their own caches, which Weir serves "
      "(--allocator async: each tensor)");
  EXPECT_THAT(with_plugs(AllocatorMode::kFramework, TorchWay::kPlug, {}).variables, IsEmpty());
  EXPECT_EQ(with_plugs(AllocatorMode::kFramework, TorchWay::kOff, {}).line, framework({}).line);
  EXPECT_EQ(
      choose_allocator({AllocatorMode::kFramework, TorchWay::kPlug, {}}, environment_of({})).line,
      framework({}).line)
      << "without a plug PyTorch is as other frameworks";
  EXPECT_THAT(
      choose_allocator({AllocatorMode::kFramework, TorchWay::kPlug, {"2.15"}}, environment_of({}))
          .line,
      HasSubstr(": PyTorch 2.15 takes each tensor from Weir (--torch off"));
}

TEST(FrameworkAllocator, TheTorchWayIsOfPyTorchAlone) {
  const auto stream_order = with_plugs(AllocatorMode::kFramework, TorchWay::kAsync, {});
  EXPECT_THAT(stream_order.variables,
              UnorderedElementsAre(Variable{"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"},
                                   Variable{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}));
  EXPECT_THAT(stream_order.line,
              AllOf(StartsWith("allocator: PyTorch asks Weir for each tensor in stream"),
                    HasSubstr(kLacks), HasSubstr("; other frameworks keep their own caches")));
  const auto plugged = with_plugs(AllocatorMode::kAsync, TorchWay::kPlug, {});
  EXPECT_THAT(plugged.variables, Not(Contains(of_name("PYTORCH_ALLOC_CONF"))));
  EXPECT_THAT(plugged.variables, Contains(of_name("TF_GPU_ALLOCATOR")));
  EXPECT_EQ(
      plugged.line,
      "allocator: PyTorch 2.9 and 2.15 take each tensor from Weir "
      "(--torch off: PyTorch's own cache); JAX and TensorFlow ask Weir for each tensor in stream "
      "order, and no cache keeps freed memory; other versions of PyTorch keep their own cache");
  EXPECT_THAT(with_plugs(AllocatorMode::kAsync, TorchWay::kOff, {}).line,
              AllOf(StartsWith("allocator: JAX and TensorFlow ask Weir"),
                    HasSubstr("; PyTorch keeps its own cache"), Not(HasSubstr(kLacks))));
}

TEST(FrameworkAllocator, TheLineDoesNotPromiseThePlugWhereTheUsersVariablesAreAgainstIt) {
  const auto line = [](const Set& set) {
    return with_plugs(AllocatorMode::kFramework, TorchWay::kPlug, set).line;
  };
  EXPECT_THAT(line({{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}}),
              AllOf(Not(HasSubstr("2.15")),
                    HasSubstr("PyTorch requests each tensor in stream order"), HasSubstr(kLacks)));
  EXPECT_THAT(
      line({{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}}),
      AllOf(Not(HasSubstr("2.15")), HasSubstr("PyTorch requests each tensor and keeps no")));
  EXPECT_THAT(
      line({{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}}),
      AllOf(HasSubstr("2.15 take each tensor"),
            HasSubstr("; by PYTORCH_CUDA_ALLOC_CONF PyTorch maps what graphs and MemPools")));
}

TEST(FrameworkAllocator, PyTorchFollowsAnAllocatorThatIsSetUnlessTheTorchWayIsSet) {
  struct Row {
    Set set;
    TorchWay way;
    const char* source;
  };
  for (const Row& row : {
           Row{{}, TorchWay::kPlug, "default"},
           Row{{{"WEIR_ALLOCATOR", "framework"}}, TorchWay::kOff, "WEIR_ALLOCATOR"},
           Row{{{"WEIR_ALLOCATOR", "async"}}, TorchWay::kAsync, "WEIR_ALLOCATOR"},
           Row{{{"WEIR_TORCH", "plug"}, {"WEIR_ALLOCATOR", "framework"}},
               TorchWay::kPlug,
               "WEIR_TORCH"},
           Row{{{"WEIR_TORCH", "off"}, {"WEIR_ALLOCATOR", "async"}}, TorchWay::kOff, "WEIR_TORCH"},
           Row{{{"WEIR_TORCH", "async"}}, TorchWay::kAsync, "WEIR_TORCH"},
       }) {
    const Environment environment = environment_of(row.set);
    const Setting<TorchWay> torch = torch_way(allocator_mode(environment), environment);
    SCOPED_TRACE(::testing::PrintToString(row.set));
    EXPECT_EQ(torch.value, row.way);
    EXPECT_EQ(torch.source, row.source);
  }
}

TEST(FrameworkAllocator, ModesAreParsedAndDescribed) {
  for (const AllocatorMode mode : {AllocatorMode::kFramework, AllocatorMode::kAsync}) {
    EXPECT_EQ(parse_name<AllocatorMode>("--allocator", to_string(mode)), mode);
  }
  EXPECT_EQ(message_of<UsageError>(
                [] { (void)parse_name<AllocatorMode>("--allocator", "cudaMallocAsync"); }),
            "--allocator='cudaMallocAsync' is not allowed: framework or async");
  EXPECT_EQ(allocator_mode(environment_of({})).value, AllocatorMode::kFramework);
  const Setting<AllocatorMode> set = allocator_mode(environment_of({{"WEIR_ALLOCATOR", "async"}}));
  EXPECT_EQ(set.value, AllocatorMode::kAsync);
  EXPECT_EQ(set.source, "WEIR_ALLOCATOR");
}

struct TorchCase {
  Set set;
  Way way;
  const char* variable;
};

// PyTorch 2.15's result of torch.cuda.get_allocator_backend() with these variables.
TEST(Frameworks, PyTorchsVariablesAreReadAsPyTorchReadsThem) {
  const char* const older = kTorchOlder;
  const char* const newer = kTorchNewer;
  for (const TorchCase& one : {
           TorchCase{{}, Way::kCache, nullptr},
           TorchCase{{{older, "backend:native"}, {newer, kTorchAsync}}, Way::kCache, older},
           TorchCase{{{older, kTorchAsync}, {newer, "backend:native"}}, Way::kStreamOrder, older},
           TorchCase{{{older, ""}, {newer, kTorchAsync}}, Way::kCache, older},
           TorchCase{{{newer, kTorchAsync}}, Way::kStreamOrder, newer},
           TorchCase{{{older, "backend: cudaMallocAsync"}}, Way::kStreamOrder, older},
           TorchCase{
               {{older, "max_split_size_mb:64,backend:cudaMallocAsync"}}, Way::kStreamOrder, older},
           TorchCase{{{older, "backend:native,backend:cudaMallocAsync"}}, Way::kCache, older},
           TorchCase{{{older, "backend:cudaMallocAsync,backend:native"}}, Way::kStreamOrder, older},
           TorchCase{{{older, "backend:cudaMallocAsync,expandable_segments:True"}},
                     Way::kStreamOrder,
                     older},
           TorchCase{{{older, "backend:cudaMallocAsyncs"}}, Way::kCache, older},
           TorchCase{{{older, "backend:nonsense"}}, Way::kCache, older},
       }) {
    const InForce torch = frameworks_in(environment_of(one.set)).front();
    SCOPED_TRACE(::testing::PrintToString(one.set));
    EXPECT_EQ(torch.way, one.way);
    EXPECT_STREQ(torch.variable, one.variable);
  }
}

TEST(Frameworks, PyTorchsOtherWaysAreKnown) {
  const auto way = [](const Set& set) { return frameworks_in(environment_of(set)).front().way; };
  EXPECT_EQ(way({{kTorchOlder, "expandable_segments:True"}}), Way::kHandles);
  EXPECT_EQ(way({{kTorchOlder, "expandable_segments:True,expandable_segments:False"}}),
            Way::kCache);
  EXPECT_EQ(way({{kTorchOlder, "expandable_segments:False,expandable_segments:True"}}),
            Way::kHandles);
  EXPECT_EQ(way({{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}}), Way::kUncached);
  EXPECT_EQ(way({{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}, {kTorchOlder, kTorchAsync}}),
            Way::kStreamOrder);
}

TEST(Frameworks, JaxAndTensorFlowHaveWaysOfTheirOwn) {
  const auto way = [](std::size_t at, const char* name, const char* value) {
    return frameworks_in(environment_of({{name, value}})).at(at).way;
  };
  const char* const jax = "XLA_PYTHON_CLIENT_ALLOCATOR";
  EXPECT_EQ(way(1, jax, ""), Way::kCache);
  EXPECT_EQ(way(1, jax, "default"), Way::kCache);
  EXPECT_EQ(way(1, jax, "bfc"), Way::kCache);
  EXPECT_EQ(way(1, jax, "cuda_async"), Way::kStreamOrder);
  EXPECT_EQ(way(1, jax, "platform"), Way::kUncached);
  EXPECT_EQ(way(1, jax, "vmm"), Way::kHandles);
  EXPECT_EQ(way(1, jax, "new"), Way::kOther);
  EXPECT_EQ(way(2, "TF_GPU_ALLOCATOR", ""), Way::kCache);
  EXPECT_EQ(way(2, "TF_GPU_ALLOCATOR", "cuda_malloc_async"), Way::kStreamOrder);
  EXPECT_EQ(way(2, "TF_GPU_ALLOCATOR", "mine"), Way::kOther);
}

}  // namespace
}  // namespace weir::cli
