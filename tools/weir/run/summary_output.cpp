#include "tools/weir/run/summary_output.hpp"

#include <unistd.h>

#include <utility>

namespace weir::cli {

std::string with_process(std::string text, std::uint64_t process) {
  const std::string number = std::to_string(process);
  for (std::size_t at = 0; (at = text.find("%p", at)) != std::string::npos; at += number.size()) {
    text.replace(at, 2, number);
  }
  return text;
}

SummaryOutput::SummaryOutput(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  if (path_.empty()) return;
  if (path_.find("%p") == std::string::npos) {
    one_ = std::make_unique<OutputFile>(option_, path_);
    return;
  }
  // The processes have no numbers yet, so use this one's.
  const OutputFile sample(option_, with_process(path_, static_cast<std::uint64_t>(getpid())));
}

void SummaryOutput::commit(const std::vector<SummaryFile>& summaries, const FlagSources& flags) {
  if (path_.empty()) return;
  if (one_ != nullptr) {
    one_->commit(indented(join_summaries(summaries), flags));
    return;
  }
  for (const SummaryFile& file : summaries) {
    OutputFile(option_, with_process(path_, file.summary.process))
        .commit(indented(file.json, flags));
  }
}

}  // namespace weir::cli
