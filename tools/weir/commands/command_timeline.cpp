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
  std::optional<Flag> output_flag;
  std::string json;
  bool text = false;
  bool wide = false;

  /// The output as the user named it.
  [[nodiscard]] NamedPath named_output() const { return {output_flag->typed(), output}; }
};

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
  require_different_files(std::array{flags.named_output(), NamedPath{"--json", flags.json}},
                          inputs);
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
  TimelineOutput output(flags.output_flag->typed(), flags.output);
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
  if (!flags.output.empty()) page.emplace(flags.output_flag->typed(), flags.output);
  if (!flags.json.empty()) json.emplace("--json", flags.json);
  const timeline::Timeline timeline = read_inputs(flags.inputs);
  if (page) page->commit(timeline::make_page(timeline));
  if (prints) require_printed(print(timeline::report_text(timeline, {.wide = flags.wide})));
  if (json) json->commit(json_text(timeline::report_json(timeline)));
  return 0;
}

Subcommand add_merge(CommandLine& parent) {
  CommandLine& line = parent.add_command(
      "merge", "merge the timelines of several processes and ranks into one file, on one clock");
  const auto flags = std::make_shared<FileFlags>();
  line.add("FILE", flags->inputs, Value("FILE"), "timelines: " + list_suffixes(FormatUse::kRead))
      .require();
  flags->output_flag = line.add("-o,--output", flags->output, Value("FILE"),
                                "the file to write, of a format by its name's end")
                           .require();
  return {line, [flags](const std::vector<std::string>& /*words*/) {
            if (flags->inputs.size() < 2) {
              throw UsageError("FILE is given once: merge takes two or more files");
            }
            return write_file(*flags);
          }};
}

Subcommand add_convert(CommandLine& parent) {
  CommandLine& line = parent.add_command("convert", "write a timeline in another format");
  const auto flags = std::make_shared<FileFlags>();
  flags->inputs.resize(1);
  line.add("FILE", flags->inputs.front(), Value("FILE"),
           "a timeline: " + list_suffixes(FormatUse::kRead))
      .require();
  flags->output_flag =
      line.add("-o,--output", flags->output, Value("FILE"),
               "the file to write: " + timeline::list_formats(FormatUse::kWrite, "or"))
          .require();
  return {line, [flags](const std::vector<std::string>& /*words*/) { return write_file(*flags); }};
}

Subcommand add_report(CommandLine& parent) {
  CommandLine& line = parent.add_command(
      "report", "report what held the memory, what the device did and what it waited for");
  const auto flags = std::make_shared<FileFlags>();
  line.add("FILE", flags->inputs, Value("FILE"), "timelines, which are merged").require();
  flags->output_flag =
      line.add("-o,--output", flags->output, Value("FILE"), "write a page (HTML) to FILE");
  line.add("--text", flags->text, "print the report (default without -o and --json)");
  line.add("--wide", flags->wide, "show all columns, and cut nothing to fit 100 columns");
  line.add("--json", flags->json, Value("FILE"), "write the figures to FILE; - is standard output");
  return {line, [flags](const std::vector<std::string>& /*words*/) { return report(*flags); }};
}

struct RecordFlags {
  /// Its own flags come first.
  explicit RecordFlags(CommandLine& line)
      : output_flag(line.add("-o,--output", output, Value("FILE"),
                             "the timeline: " + list_suffixes(FormatUse::kRecord) +
                                 "; %p in its name is the process, %r the rank")
                        .over("WEIR_TIMELINE")),
        batches_flag(line.add("--batches", batches, Value("FIRST:END"),
                              "record only these batches: 10:20 is 10 to 19 (default: all of them)")
                         .over("WEIR_TIMELINE_BATCHES")),
        run(line) {}
  std::string output = "weir-timeline.json";
  std::string batches;
  Flag output_flag;
  Flag batches_flag;
  RunFlags run;
};

Subcommand add_record(CommandLine& parent) {
  CommandLine& line =
      parent.add_command("record", "run a program under Weir and record its timeline");
  line.set_exit_codes(exit_codes_of_program());
  const auto flags = std::make_shared<RecordFlags>(line);
  return {line, [flags](const std::vector<std::string>& words) {
            (void)timeline::require_format(flags->output_flag.typed(), flags->output,
                                           FormatUse::kRecord);
            // Absolute, because the program may change its directory; placeholders in the
            // directory's name are not replaced.
            const std::filesystem::path here =
                timeline::name_of_path(std::filesystem::current_path().string());
            std::vector<Variable> variables{{"WEIR_TIMELINE", (here / flags->output).string()}};
            const FlagSources sources{
                {"WEIR_TIMELINE",
                 flags->output_flag.given() ? flags->output_flag.typed() : std::string("default")},
                {"WEIR_TIMELINE_BATCHES", "--batches"}};
            if (!flags->batches.empty()) {
              (void)timeline::parse_batch_range("--batches", flags->batches);
              variables.push_back({"WEIR_TIMELINE_BATCHES", flags->batches});
            }
            return run_with(flags->run, variables, sources, words);
          }};
}

}  // namespace

Command add_timeline_command(CommandLine& program) {
  CommandLine& line = program.add_command(
      "timeline", "record, merge, convert and report what a program did over time");
  line.require_command();
  line.set_page("docs/timelines.md");
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
