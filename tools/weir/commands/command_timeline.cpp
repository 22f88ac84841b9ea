// weir timeline: records, merges, converts and reports timelines.

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/timeline/analysis/report/report.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/files/merge.hpp"
#include "tools/timeline/files/read.hpp"
#include "tools/timeline/files/write.hpp"
#include "tools/timeline/page/page.hpp"
#include "tools/timeline/recorder/settings.hpp"
#include "tools/weir/commands/command.hpp"

namespace weir::cli {
namespace {

using timeline::FormatUse;
using timeline::list_suffixes;

/// Writes bytes to an unnamed temporary file, which can then be read as one text.
class SpilledBytes final : public timeline::ByteSink {
 public:
  SpilledBytes() : file_(std::tmpfile()) {
    if (file_ == nullptr) fail(errno);
  }
  ~SpilledBytes() override {
    if (seen_ != nullptr) (void)munmap(seen_, size_);
    (void)std::fclose(file_);
  }
  SpilledBytes(const SpilledBytes&) = delete;
  SpilledBytes& operator=(const SpilledBytes&) = delete;

  void append(std::string_view bytes) noexcept override {
    while (!bytes.empty() && error_ == 0) {
      const ssize_t written = write(fileno(file_), bytes.data(), bytes.size());
      if (written < 0) {
        if (errno != EINTR) error_ = errno;
        continue;
      }
      size_ += static_cast<std::size_t>(written);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  /// Returns all bytes. Throws UsageError if there was no room.
  [[nodiscard]] std::string_view text() {
    if (error_ != 0) fail(error_);
    if (size_ == 0) return {};
    seen_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fileno(file_), 0);
    if (seen_ == MAP_FAILED) {
      seen_ = nullptr;
      fail(errno);
    }
    return {static_cast<const char*>(seen_), size_};
  }

 private:
  [[noreturn]] static void fail(int error) {
    throw UsageError("a temporary file cannot be written (" +
                     std::generic_category().message(error) + ")");
  }

  std::FILE* file_;
  std::size_t size_ = 0;
  int error_ = 0;
  void* seen_ = nullptr;
};

/// The output file of a timeline. Like OutputFile, written entirely or not at all.
class TimelineOutput {
 public:
  /// Throws UsageError with `option` if the name or the place is not allowed.
  TimelineOutput(const std::string& option, const std::string& path);

  /// Needs no memory of the file's size. If it cannot be written, throws UsageError and keeps the
  /// old file.
  void commit(const timeline::Timeline& timeline);

 private:
  const timeline::NamedFormat format_;
  OutputFile file_;
};

TimelineOutput::TimelineOutput(const std::string& option, const std::string& path)
    : format_(timeline::require_format(option, path, timeline::FormatUse::kWrite)),
      file_(option, path) {}

void TimelineOutput::commit(const timeline::Timeline& timeline) {
  SpilledBytes bytes;
  timeline::write_timeline(timeline, format_, bytes);
  file_.commit(bytes.text());
}

/// A subcommand of `weir timeline`, like Command.
using Subcommand = Command;

struct FileFlags {
  std::vector<std::string> inputs;
  std::string output;
  std::string json;
  bool text = false;
};

void refuse_words(const std::vector<std::string>& words, const char* command) {
  if (words.empty()) return;
  throw UsageError("weir timeline " + std::string(command) + " takes no arguments after --");
}

void begin_command() {
  // A file that exceeds the size limit becomes a reported error, and its beginning is removed.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
}

/// Throws UsageError if an output is an input or another output.
void check_files(const FileFlags& flags) {
  std::vector<NamedPath> inputs;
  for (const std::string& path : flags.inputs) inputs.push_back({"FILE", path});
  require_different_files(
      std::array{NamedPath{"--output", flags.output}, NamedPath{"--json", flags.json}}, inputs);
}

timeline::Timeline read_inputs(const std::vector<std::string>& paths) {
  std::vector<timeline::Timeline> timelines;
  timelines.reserve(paths.size());
  for (const std::string& path : paths) timelines.push_back(timeline::read_timeline(path));
  return timelines.size() == 1 ? std::move(timelines.front())
                               : timeline::merge(std::move(timelines));
}

int write_file(const FileFlags& flags) {
  begin_command();
  check_files(flags);
  TimelineOutput output("--output", flags.output);
  output.commit(read_inputs(flags.inputs));
  return 0;
}

int report(const FileFlags& flags) {
  begin_command();
  check_files(flags);
  const bool prints = flags.text || (flags.output.empty() && flags.json.empty());
  if (prints && (flags.json == "-" || flags.output == "-")) {
    throw UsageError("--text is not allowed with an output that goes to standard output");
  }
  if (prints) require_standard_output();
  std::optional<OutputFile> page;
  std::optional<OutputFile> json;
  if (!flags.output.empty()) page.emplace("--output", flags.output);
  if (!flags.json.empty()) json.emplace("--json", flags.json);
  const timeline::Timeline timeline = read_inputs(flags.inputs);
  if (page) page->commit(timeline::make_page(timeline));
  if (prints) require_printed(print(timeline::report_text(timeline)));
  if (json) json->commit(json_text(timeline::report_json(timeline)));
  return 0;
}

Subcommand add_merge(CommandLine& parent) {
  CommandLine& line = parent.add_command(
      "merge", "merge the timelines of several processes and ranks into one file, on one clock");
  const auto flags = std::make_shared<FileFlags>();
  line.add("FILE", flags->inputs, "timelines: " + list_suffixes(FormatUse::kRead)).require();
  line.add("-o,--output", flags->output, "the file to write, of a format by its name's end")
      .require();
  return {line, [flags](const std::vector<std::string>& words) {
            refuse_words(words, "merge");
            if (flags->inputs.size() < 2) throw UsageError("merge takes two or more files");
            return write_file(*flags);
          }};
}

Subcommand add_convert(CommandLine& parent) {
  CommandLine& line = parent.add_command("convert", "write a timeline in another format");
  const auto flags = std::make_shared<FileFlags>();
  flags->inputs.resize(1);
  line.add("FILE", flags->inputs.front(), "a timeline: " + list_suffixes(FormatUse::kRead))
      .require();
  line.add("-o,--output", flags->output,
           "the file to write: " + timeline::list_formats(FormatUse::kWrite, "or"))
      .require();
  return {line, [flags](const std::vector<std::string>& words) {
            refuse_words(words, "convert");
            return write_file(*flags);
          }};
}

Subcommand add_report(CommandLine& parent) {
  CommandLine& line = parent.add_command(
      "report", "report what held the memory, what the device did and what it waited for");
  const auto flags = std::make_shared<FileFlags>();
  line.add("FILE", flags->inputs, "timelines, which are merged").require();
  line.add("-o,--output", flags->output, "write a page (HTML) to this file");
  line.add("--json", flags->json, "write the figures to this file; - is standard output");
  line.add("--text", flags->text, "print the report (default without -o and --json)");
  return {line, [flags](const std::vector<std::string>& words) {
            refuse_words(words, "report");
            return report(*flags);
          }};
}

struct RecordFlags {
  explicit RecordFlags(CommandLine& line) : run(line) {}
  RunFlags run;
  std::string output = "weir-timeline.json";
  std::string batches;
};

Subcommand add_record(CommandLine& parent) {
  CommandLine& line = parent.add_command("record",
                                         "run a program under Weir and record its timeline: "
                                         "weir timeline record [FLAGS] -- PROGRAM [ARGUMENTS]");
  const auto flags = std::make_shared<RecordFlags>(line);
  line.add("-o,--output", flags->output,
           "the file: " + list_suffixes(FormatUse::kRecord) +
               "; %p in its name is the process, %r the rank (WEIR_TIMELINE)");
  line.add("--batches", flags->batches,
           "record only these batches, such as 10:20 (WEIR_TIMELINE_BATCHES)");
  return {line, [flags](const std::vector<std::string>& words) {
            if (words.empty()) {
              throw UsageError(
                  "the program to record is missing: weir timeline record [FLAGS] -- PROGRAM "
                  "[ARGUMENTS]");
            }
            (void)timeline::require_format("--output", flags->output, FormatUse::kRecord);
            // Absolute, because the program may change its directory; placeholders in the
            // directory's name are not replaced.
            const std::filesystem::path here =
                timeline::name_of_path(std::filesystem::current_path().string());
            std::vector<Variable> variables{{"WEIR_TIMELINE", (here / flags->output).string()}};
            if (!flags->batches.empty()) {
              (void)timeline::parse_batch_range("--batches", flags->batches);
              variables.push_back({"WEIR_TIMELINE_BATCHES", flags->batches});
            }
            return run_with(flags->run, variables, words);
          }};
}

}  // namespace

Command add_timeline_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "timeline", "record, merge, convert and report what a program did over time");
  line.require_command();
  const std::vector<Subcommand> commands{add_record(line), add_report(line), add_merge(line),
                                         add_convert(line)};
  return {line, [commands](const std::vector<std::string>& words) {
            for (const Subcommand& command : commands) {
              if (command.line.named()) return command.run(words);
            }
            return 1;  // not reached: one subcommand is required
          }};
}

}  // namespace weir::cli
