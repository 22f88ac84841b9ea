// Variables of others.

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

TEST(DoctorEnvironment, TheAllocatorsInForceAreTheLineOfWeirRun) {
  const std::vector<Case> cases{
      {"none set", [](Facts&) {}, "allocator", State::kOk,
       "allocator: PyTorch 2.9 and 2.15 take each tensor from Weir", "", kNothing},
      {"PyTorch's backend",
       [](Facts& facts) {
         facts.environment.variables = {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}};
       },
       "allocator", State::kOk,
       "by PYTORCH_CUDA_ALLOC_CONF PyTorch requests each tensor in stream order", "", kNothing},
      {"Weir's way",
       [](Facts& facts) {
         facts.environment.variables = {{"WEIR_TORCH", "off"}};
       },
       "allocator", State::kOk, "frameworks keep their own caches", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
  Facts bad = good_machine();
  bad.environment.variables = {{"WEIR_TORCH", "on"}};
  for (const Finding& finding : check_environment(bad.environment)) {
    EXPECT_NE(finding.check, "allocator");
  }
}

TEST(DoctorEnvironment, Frameworks) {
  const std::vector<Case> cases{
      {"two names",
       [](Facts& facts) {
         facts.environment.variables = {{"PYTORCH_CUDA_ALLOC_CONF", ""},
                                        {"PYTORCH_ALLOC_CONF", "backend:native"}};
       },
       "torch-settings", State::kWarn,
       "PYTORCH_CUDA_ALLOC_CONF='' hides PYTORCH_ALLOC_CONF='backend:native'",
       "unset PYTORCH_CUDA_ALLOC_CONF", kNothing},
      {"no cache",
       [](Facts& facts) {
         facts.environment.variables = {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "0"}};
       },
       "torch-settings", State::kWarn, "PYTORCH_NO_CUDA_MEMORY_CACHING is set, whatever its value",
       "unset PYTORCH_NO_CUDA_MEMORY_CACHING", kNothing},
      {"JAX takes it all the same",
       [](Facts& facts) {
         facts.environment.variables = {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"}};
       },
       "jax-settings", State::kWarn, "JAX takes three quarters",
       "XLA_PYTHON_CLIENT_PREALLOCATE=false", kNothing},
      {"TensorFlow's",
       [](Facts& facts) {
         facts.environment.variables = {{"TF_GPU_ALLOCATOR", "best"}};
       },
       "tensorflow-settings", State::kWarn, "TF_GPU_ALLOCATOR='best' is no allocator",
       "cuda_malloc_async", kNothing}};
  for (const Case& one : cases) expect_finding(one);
  Facts good = good_machine();
  good.environment.variables = {{"PYTORCH_CUDA_ALLOC_CONF", "backend:native"},
                                {"PYTORCH_ALLOC_CONF", "backend:native"},
                                {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
                                {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
                                {"TF_GPU_ALLOCATOR", "cuda_malloc_async"}};
  for (const Finding& finding : check_environment(good.environment)) {
    EXPECT_EQ(finding.state, State::kOk) << finding.text;
  }
}

TEST(DoctorEnvironment, PreloadedLibraries) {
  const std::vector<Case> cases{
      {"an allocator of the host",
       [](Facts& facts) {
         facts.environment.variables = {{"LD_PRELOAD", "/lib/libjemalloc.so.2"}};
       },
       "preloaded", State::kOk, "LD_PRELOAD=/lib/libjemalloc.so.2: an allocator of host memory", "",
       kNothing},
      {"Weir first",
       [](Facts& facts) {
         facts.environment.variables = {{"LD_PRELOAD", "/x/libweir.so:/lib/libtcmalloc.so"}};
       },
       "preloaded", State::kOk, "so a GPU's memory is the budget", "", kNothing},
      {"some library",
       [](Facts& facts) {
         facts.environment.variables = {{"LD_PRELOAD", "/lib/libx.so"}};
       },
       "preloaded", State::kOk, "LD_PRELOAD=/lib/libx.so; weir run puts libweir.so first", "",
       kNothing},
      {"Weir behind",
       [](Facts& facts) {
         facts.environment.variables = {{"LD_PRELOAD", "/lib/libother.so /x/libweir.so"}};
       },
       "preloaded", State::kWarn, "has libweir.so behind another library", "libweir.so first",
       kNothing},
      {"a sanitizer",
       [](Facts& facts) {
         facts.environment.variables = {{"LD_PRELOAD", "/lib/libasan.so.8"}};
       },
       "preloaded", State::kWarn, "has a sanitizer", "verify_asan_link_order=0", kNothing},
      {"a file that is not there",
       [](Facts& facts) {
         facts.environment.variables = {{"LD_PRELOAD", "/x/gone.so"}};
         facts.environment.missing_preloads = {"/x/gone.so"};
       },
       "preloaded", State::kWarn, "LD_PRELOAD names /x/gone.so, which is not there",
       "out of LD_PRELOAD", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorEnvironment, Cuda) {
  const std::vector<Case> cases{
      {"some GPUs",
       [](Facts& facts) {
         facts.environment.variables = {{"CUDA_VISIBLE_DEVICES", "2,3"}};
       },
       "visible-devices", State::kOk, "CUDA_VISIBLE_DEVICES='2,3'", "", kNothing},
      {"no GPU",
       [](Facts& facts) {
         facts.environment.variables = {{"CUDA_VISIBLE_DEVICES", "-1"}};
       },
       "visible-devices", State::kWarn, "CUDA_VISIBLE_DEVICES='-1' hides every GPU",
       "CUDA_VISIBLE_DEVICES=0", kNothing},
      {"launches block",
       [](Facts& facts) {
         facts.environment.variables = {{"CUDA_LAUNCH_BLOCKING", "1"}};
       },
       "launch-blocking", State::kWarn, "nothing runs ahead", "unset CUDA_LAUNCH_BLOCKING",
       kNothing},
      {"a profiler",
       [](Facts& facts) {
         facts.environment.variables = {{"CUDA_INJECTION64_PATH", "/x/p.so"}};
       },
       "profiler", State::kWarn, "names a profiler, /x/p.so", "unset CUDA_INJECTION64_PATH",
       kNothing},
      {"another library for ranges",
       [](Facts& facts) {
         facts.environment.variables = {{"NVTX_INJECTION64_PATH", "/x/nsys.so"},
                                        {"WEIR_BATCH_RANGE", "step"}};
       },
       "nvtx", State::kWarn, "WEIR_BATCH_RANGE sees no range", "unset NVTX_INJECTION64_PATH",
       kNothing},
      {"stubs",
       [](Facts& facts) {
         facts.environment.variables = {{"LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs"}};
       },
       "library-path", State::kWarn, "has a folder `stubs`", "out of LD_LIBRARY_PATH", kNothing},
      {"a part of a GPU",
       [](Facts& facts) {
         facts.environment.variables = {{"CUDA_VISIBLE_DEVICES", "MIG-1"}};
       },
       "mig", State::kOk, "a part of a GPU (MIG)", "", kNothing},
      {"a service", [](Facts& facts) { facts.environment.has_mps_pipe = true; }, "mps", State::kOk,
       "CUDA's multi-process service (MPS) may run here", "", kNothing},
      {"a service's limit",
       [](Facts& facts) {
         facts.environment.variables = {{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=8G"}};
       },
       "mps", State::kWarn, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8G limits device memory",
       "WEIR_BUDGET", kNothing},
      {"a container without a GPU",
       [](Facts& facts) {
         facts.environment.variables = {{"NVIDIA_VISIBLE_DEVICES", "void"}};
       },
       "container", State::kWarn, "this container was given no GPU", "--gpus all", kNothing}};
  for (const Case& one : cases) expect_finding(one);
  Facts good = good_machine();
  good.environment.variables = {{"CUDA_LAUNCH_BLOCKING", "0"},
                                {"CUDA_INJECTION64_PATH", "/x/libweir_timeline.so"},
                                {"NVTX_INJECTION64_PATH", "/x/libweir.so"},
                                {"WEIR_BATCH_RANGE", "step"},
                                {"NVIDIA_VISIBLE_DEVICES", "all"}};
  for (const Finding& finding : check_environment(good.environment)) {
    EXPECT_EQ(finding.state, State::kOk) << finding.text;
  }
}

}  // namespace
}  // namespace weir::cli::doctor::testing
