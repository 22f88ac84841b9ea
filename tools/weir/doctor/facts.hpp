#pragma once

// What `weir doctor` knows of a machine. collect.hpp fills it in, checks.hpp judges it; tests write
// it down.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "tools/preload/torch/plug_file.hpp"
#include "tools/preload/torch/torch_version.hpp"
#include "tools/weir/info/driver.hpp"

namespace weir::cli::doctor {

struct SystemFacts {
  std::string name;       ///< `Debian GNU/Linux 12 (bookworm), Linux 6.1.0, glibc 2.36, x86_64`
  std::string container;  ///< its kind; empty outside one
  unsigned cpus = 0;
  Bytes memory;
};

/// How something that ran in a child process ended.
enum class Answer : std::uint8_t {
  kCame,
  kTimedOut,  ///< and was ended
  kCrashed,   ///< a signal ended it
};

/// One of NVIDIA's libraries, opened as Weir opens it.
struct LibraryFound {
  std::string path{};
  std::string problem{};  ///< why it cannot be used; empty: it can
};

struct DriverFacts {
  Answer answer = Answer::kCame;  ///< of the driver
  int signal = 0;                 ///< that ended it
  DriverInfo driver;
  std::string kernel_module;  ///< its version; empty: not loaded
  bool has_files = false;     ///< /dev/nvidiactl, or WSL's file
  int toolkit = 0;            ///< that Weir was built with: 13000 for 13.0; zero: without one
  LibraryFound cublas;
  LibraryFound cupti;
};

/// A small program with the library in front of it.
struct Trial {
  enum class End : std::uint8_t {
    kLoaded,     ///< the library was in the process
    kNotLoaded,  ///< the process ended well without it
    kFailed,     ///< the process did not end well
    kTimedOut,
    kRefused,  ///< nothing can be preloaded into the program; `message` says why
    kNotTried,
  };
  End end = End::kNotTried;
  std::string program{};
  std::string message{};  ///< the loader's first line, for example
};

struct LibraryFacts {
  std::string path;       ///< empty: none
  bool is_named = false;  ///< by WEIR_LIBRARY
  std::string problem;    ///< why there is none, or why it is unfit
  std::string version;    ///< what the file says of itself; empty: nothing
  std::string command_version;
  std::vector<std::string> plugs;  ///< versions of PyTorch
};

struct TorchFacts {
  std::optional<preload::TorchVersion> version;
  bool has_cuda = true;
  std::optional<preload::CxxAbi> abi;
  std::string plug;          ///< the file's name, without a folder
  bool plug_exists = false;  ///< beside the library
  std::string plug_unfit;    ///< why it cannot be loaded
};

struct PythonFacts {
  std::string asked = "python3";  ///< by --python
  bool is_asked = false;          ///< or the default
  std::string problem;            ///< why there is none, or none that can be preloaded into
  Answer answer = Answer::kCame;
  std::string said;        ///< the last line of its standard error
  std::string version;     ///< `3.11.2`; empty: no answer
  std::string executable;  ///< as it names itself
  std::optional<TorchFacts> torch;
  std::map<std::string, std::string> packages;  ///< versions by framework, such as `JAX`
  std::vector<std::string> runtimes;            ///< its CUDA runtimes' files
  Trial trial;
};

/// Variables by name: Weir's, MXNet's, and those that change what a GPU program does.
using Variables = std::map<std::string, std::string>;

/// A limit of the system; nothing: unlimited.
using Limit = std::optional<std::uint64_t>;

struct LimitsFacts {
  Limit open_files;                    ///< ulimit -n
  Limit open_files_at_most;            ///< ulimit -Hn
  std::optional<Bytes> shared_memory;  ///< /dev/shm; nothing: there is none
  bool shared_memory_writable = true;
};

enum class Group : std::uint8_t {
  kSystem,
  kDriver,
  kLibrary,
  kPython,
  kSettings,
  kLimits,
  kEnvironment,
};

struct Facts {
  SystemFacts system;
  DriverFacts driver;
  LibraryFacts library;
  PythonFacts python;
  Variables variables;
  LimitsFacts limits;
  std::string pages;  ///< the folder of docs/doctor.md and its neighbours; empty: they are not here
};

}  // namespace weir::cli::doctor
