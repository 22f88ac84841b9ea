#pragma once

// A program as a child process with an environment that the test sets completely, and without a GPU
// unless the test names one (CUDA_VISIBLE_DEVICES): its figures are the cpu's.
// Nothing here sleeps or has a deadline: a test waits for the child's output, its end, or a pipe,
// and the presets' limit ends one that hangs.

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

using Variables = std::map<std::string, std::string>;
using Words = std::vector<std::string>;

struct Finished {
  int exit_code = -1;  ///< −1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

struct ChildOptions {
  std::string program{};  ///< another than the target's WEIR_TRAIN_PROGRAM
  Variables environment{};
  std::string stdout_path{};  ///< a file instead of the pipe
  std::string stdin_path = "/dev/null";
  bool stdin_is_pipe = false;
  bool stdout_is_closed = false;
  bool stdout_is_full = false;  ///< a pipe without room: the child blocks when it writes there
  bool stdout_has_no_reader = false;
  bool is_job = false;  ///< in its own process group, which ends with it
  int terminal = -1;    ///< of posix_openpt: the child's three streams, which controls it
};

class ChildProcess {
 public:
  /// Starts the program with these arguments, with default handlers for every signal.
  explicit ChildProcess(const Words& arguments, ChildOptions options = {});
  /// Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Writes to its standard input.
  void tell(std::string_view text) const;
  void end_input();
  /// Reads until this comes behind what was read by the last call. Fails the test if it ends
  /// before.
  void await_text(std::string_view text) { await_in(result_.out, text, out_read_); }
  void await_error_text(std::string_view text) { await_in(result_.err, text, err_read_); }
  /// The line after what was read by the last call, without its end; empty if it ends before.
  [[nodiscard]] std::string read_line();
  void send(int signal) const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits until it stops (true) or ends.
  [[nodiscard]] bool has_stopped() const;
  /// Reads both streams to their end and reaps the child.
  [[nodiscard]] Finished wait();

 private:
  /// One round of reading. Returns false at the end of the output.
  bool read_more();
  void await_in(const std::string& read, std::string_view text, std::size_t& seen);
  void close_pipes();

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  bool is_job_ = false;
  std::size_t out_read_ = 0;
  std::size_t err_read_ = 0;
  Finished result_;
};

/// Starts the target's WEIR_TRAIN_PROGRAM, and waits for its end.
[[nodiscard]] Finished run_weir_train(const Words& arguments, Variables environment = {});

/// Checks that a program refused: exit code `code`, nothing on standard output, and one line that
/// begins with the program's name and contains all of `parts`.
void expect_refused_in_one_line(const Finished& finished, const Words& parts, int code = 2);

[[nodiscard]] std::ptrdiff_t occurrences(std::string_view text, std::string_view part);

/// The same program with `arguments` and these variables besides its own, as
/// --gtest_filter=SUITE.NAME. Returns its exit code.
[[nodiscard]] int run_this_program(const Words& arguments, const Variables& more);

namespace internal {
/// What a target tests. Set by what includes this.
inline std::string& tested_program() {
  static std::string path;
  return path;
}
#ifdef WEIR_TRAIN_PROGRAM
[[maybe_unused]] inline const bool kIsKnown = !(tested_program() = WEIR_TRAIN_PROGRAM).empty();
#endif
}  // namespace internal

}  // namespace weir::testing
