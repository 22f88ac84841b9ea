#pragma once

// The program under test as a child process with an environment that the test sets completely, and
// without a GPU unless the test names one (CUDA_VISIBLE_DEVICES): its figures are the cpu's.
// Nothing here sleeps: a test waits for the child's output, its end, or a pipe. The deadline only
// turns a hang into a failure with a message.

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

using Variables = std::map<std::string, std::string>;

struct Finished {
  int exit_code = -1;  ///< −1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

struct ChildOptions {
  std::string program{};  ///< another than weir-train
  Variables environment{};
  std::string stdout_path{};  ///< a file instead of the pipe
  std::string stdin_path = "/dev/null";
  bool stdout_is_closed = false;
  bool stdout_is_full = false;  ///< a pipe without room: the child blocks when it writes there
  bool stdout_has_no_reader = false;
};

class ChildProcess {
 public:
  /// Starts the program with these arguments, with default handlers for every signal.
  explicit ChildProcess(const std::vector<std::string>& arguments, ChildOptions options = {});
  /// Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Reads until standard error contains `text`. Fails the test if it ends before.
  void await_error_text(std::string_view text);
  void send(int signal) const;
  /// Reads both streams to their end and reaps the child.
  [[nodiscard]] Finished wait();

 private:
  /// One round of reading. Returns false at the end of the output, or after the deadline.
  bool read_more();
  void close_pipes();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Finished result_;
};

/// Starts it, and waits for its end.
[[nodiscard]] Finished run_weir_train(const std::vector<std::string>& arguments,
                                      Variables environment = {});

}  // namespace weir::testing
