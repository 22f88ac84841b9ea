#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>

#include "allocator/base/error.hpp"
#include "trainer/ranks/transport.hpp"

namespace weir {
namespace {

/// What the binary interfaces of the two libraries share: int for counts, ranks, tags and results,
/// and these values. MPI_SUCCESS is 0 in both. Sources: Open MPI 4.1.4's mpi.h (OMPI), MPICH
/// 4.0.2's mpi.h.
constexpr int kSuccess = 0;
constexpr int kThreadSerialized = 2;      // MPI_THREAD_SERIALIZED; OMPI an enum, MPICH a macro
constexpr std::size_t kErrorText = 1024;  // more than MPI_MAX_ERROR_STRING: 256 OMPI, 512 MPICH

void* symbol_of(void* library, const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) throw UsageError(std::string("the MPI library has no ") + name);
  return symbol;
}

/// Open MPI: handles are pointers, and constants are the addresses of variables it exports
/// (OMPI_PREDEFINED_GLOBAL).
struct OpenMpiAbi {
  using Handle = void*;
  static constexpr const char* kName = "Open MPI";
  static constexpr const char* kLibrary = "libmpi.so.40";  // Open MPI 4.0 to 5.0
  static constexpr const char* kPackage = "openmpi-bin";
  /// Its plugins look up the library's symbols in the process.
  static constexpr int kOpen = RTLD_NOW | RTLD_GLOBAL;
  static constexpr std::uintptr_t kIgnoreStatus = 0;  // MPI_STATUS_IGNORE, (MPI_Status*) 0
  static Handle world(void* library) { return symbol_of(library, "ompi_mpi_comm_world"); }
  static Handle byte(void* library) { return symbol_of(library, "ompi_mpi_byte"); }
  static Handle errors_return(void* library) {
    return symbol_of(library, "ompi_mpi_errors_return");
  }
};

/// MPICH: handles are int, and constants are numbers.
struct MpichAbi {
  using Handle = int;
  static constexpr const char* kName = "MPICH";
  static constexpr const char* kLibrary = "libmpich.so.12";  // Debian's and Ubuntu's file
  static constexpr const char* kPackage = "mpich";
  static constexpr int kOpen = RTLD_NOW | RTLD_LOCAL;
  static constexpr std::uintptr_t kIgnoreStatus = 1;         // (MPI_Status *)1
  static Handle world(void*) { return 0x44000000; }          // MPI_COMM_WORLD
  static Handle byte(void*) { return 0x4c00010d; }           // MPI_BYTE
  static Handle errors_return(void*) { return 0x54000001; }  // MPI_ERRORS_RETURN
};

void* open_library(const char* file, int flags, const char* name, const char* package) {
  void* const library = dlopen(file, flags);  // never closed: MPI's threads may run in it
  if (library != nullptr) return library;
  const char* const reason = dlerror();
  throw UsageError(std::string("this process was started by ") + name + "'s mpirun, but " + file +
                   " cannot be opened: install " + package + " (" +
                   (reason != nullptr ? reason : "no reason given") + ")");
}

/// Keeps what the program does at signals that stop it. MPICH loads UCX, which takes SIGHUP.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 0; i < kStops.size(); ++i) sigaction(kStops[i], nullptr, &before_[i]);
  }
  ~KeptSignals() {
    for (std::size_t i = 0; i < kStops.size(); ++i) sigaction(kStops[i], &before_[i], nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr std::array kStops{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kStops.size()> before_{};
};

template <typename Abi>
class Mpi final : public Transport {
 public:
  Mpi() {
    look_up("MPI_Init_thread", init_);
    look_up("MPI_Comm_set_errhandler", set_errors_);
    look_up("MPI_Comm_rank", comm_rank_);
    look_up("MPI_Comm_size", comm_size_);
    look_up("MPI_Isend", send_);
    look_up("MPI_Irecv", receive_);
    look_up("MPI_Test", test_);
    look_up("MPI_Error_string", error_text_);
    look_up("MPI_Finalize", finalize_);
    int provided = 0;
    {
      const KeptSignals kept;
      check(init_(nullptr, nullptr, kThreadSerialized, &provided), "MPI_Init_thread");
    }
    if (provided < kThreadSerialized) {
      throw Error(std::string(Abi::kName) + " allows calls from one thread only");
    }
    check(set_errors_(world_, Abi::errors_return(library_)), "MPI_Comm_set_errhandler");
    check(comm_rank_(world_, &rank_), "MPI_Comm_rank");
    check(comm_size_(world_, &size_), "MPI_Comm_size");
  }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }

  void send(std::span<const std::byte> bytes, int to, int tag) override {
    Request& request = started_.emplace_back(Request{.other = to});
    check(send_(bytes.data(), count_of(bytes.size()), byte_, to, tag, world_, &request.handle),
          "MPI_Isend");
  }
  void receive(std::span<std::byte> bytes, int from, int tag) override {
    Request& request = started_.emplace_back(Request{.other = from});
    check(receive_(bytes.data(), count_of(bytes.size()), byte_, from, tag, world_, &request.handle),
          "MPI_Irecv");
  }

  bool progress() override {
    std::erase_if(started_, [this](Request& request) {
      int done = 0;
      check(test_(&request.handle, &done, reinterpret_cast<void*>(Abi::kIgnoreStatus)), "MPI_Test");
      return done != 0;
    });
    return started_.empty();
  }

  [[nodiscard]] std::vector<int> waits_for() const override {
    std::vector<int> others;
    for (const Request& request : started_) others.push_back(request.other);
    std::ranges::sort(others);
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
  }

  void finish() override { check(finalize_(), "MPI_Finalize"); }

 private:
  using Handle = typename Abi::Handle;
  struct Request {
    Handle handle{};
    int other = 0;
  };

  template <typename Function>
  void look_up(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(symbol_of(library_, name));
  }
  static int count_of(std::size_t bytes) {
    if (bytes > kMostMessage) throw Error("a message of MPI may have 1 GiB at most");
    return static_cast<int>(bytes);
  }
  void check(int result, const char* call) const {
    if (result == kSuccess) return;
    std::array<char, kErrorText> text{};
    int length = 0;
    error_text_(result, text.data(), &length);
    throw Error(std::string(call) + " failed (" + Abi::kName + "): " + text.data());
  }

  void* const library_ = open_library(Abi::kLibrary, Abi::kOpen, Abi::kName, Abi::kPackage);
  const Handle world_ = Abi::world(library_);
  const Handle byte_ = Abi::byte(library_);
  int (*init_)(int*, char***, int, int*) = nullptr;
  int (*set_errors_)(Handle, Handle) = nullptr;
  int (*comm_rank_)(Handle, int*) = nullptr;
  int (*comm_size_)(Handle, int*) = nullptr;
  int (*send_)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*receive_)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*test_)(Handle*, int*, void*) = nullptr;
  int (*error_text_)(int, char*, int*) = nullptr;
  int (*finalize_)() = nullptr;
  int rank_ = 0;
  int size_ = 1;
  std::vector<Request> started_;
};

}  // namespace

std::unique_ptr<Transport> open_mpi(Launcher launcher) {
  if (launcher == Launcher::kOpenMpi) return std::make_unique<Mpi<OpenMpiAbi>>();
  return std::make_unique<Mpi<MpichAbi>>();
}

}  // namespace weir
