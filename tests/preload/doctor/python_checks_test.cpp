// The interpreter, PyTorch and the other frameworks.

#include "doctor_cases.hpp"

namespace weir::cli::doctor::testing {
namespace {

void without_python(Facts& facts) {
  facts.python = {};
  facts.python.problem = "the program 'python3' is not in any folder of PATH";
}

TEST(DoctorPython, TheInterpreter) {
  const std::vector<Case> cases{
      {"none", without_python, "python", State::kWarn,
       "the program 'python3' is not in any folder of PATH", "weir doctor --python", kNothing},
      {"none by that name",
       [](Facts& facts) {
         without_python(facts);
         facts.python.is_asked = true;
       },
       "python", State::kFails, "'python3' is not in any folder", "weir doctor --python",
       kPlugAlone},
      {"it hangs",
       [](Facts& facts) {
         facts.python = {};
         facts.python.answer = Answer::kTimedOut;
       },
       "python", State::kFails, "python3 of the PATH does not answer in time", "sitecustomize",
       kPlugAlone},
      {"it crashes",
       [](Facts& facts) {
         facts.python = {};
         facts.python.answer = Answer::kCrashed;
         facts.python.is_asked = true;
       },
       "python", State::kFails, "python3 does not run", "Python 3.8 or later", kPlugAlone},
      {"it says why it does not run",
       [](Facts& facts) {
         facts.python.version.clear();
         facts.python.said = "ModuleNotFoundError: No module named 'encodings'";
       },
       "python", State::kFails,
       "python3 of the PATH does not run: ModuleNotFoundError: No module named 'encodings'",
       "Python 3.8 or later", kPlugAlone},
      {"it is too old", [](Facts& facts) { facts.python.version.clear(); }, "python", State::kFails,
       "python3 of the PATH does not run", "Python 3.8 or later", kPlugAlone},
      {"good", [](Facts&) {}, "python", State::kOk, "Python 3.11.2 (/usr/bin/python3)", "",
       kNothing},
      {"nothing can be preloaded into it",
       [](Facts& facts) {
         facts.python.trial.end = Trial::End::kRefused;
         facts.python.trial.message = "'/usr/bin/python3' has file capabilities";
       },
       "python-preload", State::kFails, "'/usr/bin/python3' has file capabilities",
       "run your programs by another one", kSwapIn}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorPython, PyTorchAndItsPlug) {
  const std::vector<Case> cases{
      {"not installed", [](Facts& facts) { facts.python.torch.reset(); }, "torch", State::kOk,
       "PyTorch is not installed", "", kNothing},
      {"unknown version", [](Facts& facts) { facts.python.torch->version.reset(); }, "torch",
       State::kWarn, "PyTorch's version is not known", "install PyTorch again", kPlugAlone},
      {"for the cpu",
       [](Facts& facts) {
         facts.python.torch->has_cuda = false;
         facts.python.torch->version->text = "2.15.0+cpu";
       },
       "torch", State::kWarn, "PyTorch 2.15.0+cpu is built without CUDA", "with CUDA", kPlugAlone},
      {"for a newer driver",
       [](Facts& facts) {
         facts.driver.driver.version = 12080;
         facts.python.torch->version->text = "2.15.0+cu132";
       },
       "torch", State::kFails,
       "PyTorch 2.15.0+cu132 needs a driver for CUDA 13.0, and this one is for 12.8",
       "a PyTorch for CUDA 12", kPlugAlone},
      {"no release", [](Facts& facts) { facts.python.torch->version->is_release = false; },
       "torch-plug", State::kWarn, "is no release", "WEIR_TORCH=plug", kPlugAlone},
      {"unknown ABI", [](Facts& facts) { facts.python.torch->abi.reset(); }, "torch-plug",
       State::kWarn, "does not tell its C++ ABI", "install PyTorch again", kPlugAlone},
      {"no plug", [](Facts& facts) { facts.python.torch->plug_exists = false; }, "torch-plug",
       State::kWarn,
       "there is no plug for PyTorch 2.15.0+cu130: PyTorch keeps its own cache, and Weir serves "
       "the cache's segments",
       "says under \"A version of PyTorch that came later\"", kPlugAlone},
      {"an unfit plug", [](Facts& facts) { facts.python.torch->plug_unfit = "it is cut off"; },
       "torch-plug", State::kWarn,
       "the plug libweir_torch_2.15.so for PyTorch 2.15.0+cu130 is not used: it is cut off",
       "install Weir again", kPlugAlone},
      {"a plug", [](Facts&) {}, "torch-plug", State::kOk,
       "there is a plug for PyTorch 2.15.0+cu130: libweir_torch_2.15.so", "", kNothing}};
  for (const Case& one : cases) expect_finding(one);
}

TEST(DoctorPython, ThePlugIsSpokenOfWherePyTorchIsOrNobodyCouldLook) {
  const auto concerns = [](const Facts& facts) { return concerns_torch(facts, check_all(facts)); };
  Facts facts = good_machine();
  EXPECT_TRUE(concerns(facts));
  facts.python.torch.reset();
  EXPECT_FALSE(concerns(facts));
  facts.python.answer = Answer::kCrashed;
  EXPECT_TRUE(concerns(facts));
  without_python(facts);
  EXPECT_FALSE(concerns(facts)) << "python3 is missing, and nobody asked for it";
  facts.python.is_asked = true;
  EXPECT_TRUE(concerns(facts));
  facts = good_machine();
  facts.python = {};
  facts.missed = {{.group = Group::kPython, .why = "odd", .lack = Lack::kUnknown}};
  EXPECT_TRUE(concerns(facts));
}

TEST(DoctorPython, AWheelOfAnOlderCudaRunsOnANewerDriver) {
  for (const char* version : {"2.15.0+cu126", "2.15.0", "2.15.0+cu", "2.15.0+cu99999999999"}) {
    PythonFacts facts = good_machine().python;
    facts.torch->version->text = version;
    for (const Finding& finding : check_python(facts, 13000, {})) {
      EXPECT_EQ(finding.state, State::kOk) << finding.text;
    }
  }
}

TEST(DoctorPython, EachFrameworkWithHowWeirWorksWithIt) {
  PythonFacts facts = good_machine().python;
  facts.packages = {{"JAX", "0.10.2"},
                    {"CuPy", "14.2.0"},
                    {"Numba", "0.30.4"},
                    {"RMM", "26.10.0"},
                    {"TensorFlow", "2.20.0"}};
  std::vector<std::string> texts;
  for (const Finding& finding : check_python(facts, 13000, {})) {
    if (finding.check == "framework") texts.push_back(finding.text);
  }
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::StartsWith;
  EXPECT_THAT(texts, ::testing::ElementsAre(
                         AllOf(StartsWith("JAX 0.10.2: "), HasSubstr("--allocator async")),
                         AllOf(StartsWith("CuPy 14.2.0: "), HasSubstr("weir.cupy")),
                         AllOf(StartsWith("Numba 0.30.4: "), HasSubstr("weir.numba")),
                         AllOf(StartsWith("RMM 26.10.0: "), HasSubstr("weir.rmm")),
                         AllOf(StartsWith("TensorFlow 2.20.0: "), HasSubstr("--allocator async"))));
}

}  // namespace
}  // namespace weir::cli::doctor::testing
