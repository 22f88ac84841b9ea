#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "allocator/base/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/facts/facts.hpp"

namespace weir::gpu_check {
namespace {

using Object = nlohmann::ordered_json;

/// Writes one list, one fact a line, each part of a line as soon as it is known. If a question
/// crashes the program, all earlier answers are kept and the question stands last (report.py reads
/// truncated lists).
class FactsWriter {
 public:
  void asked(const Fact& fact) {
    std::fprintf(stderr, "asked: %s\n", fact.fact.c_str());
    const std::string head =
        Object{{"fact", fact.fact}, {"expected", fact.expected}, {"otherwise", fact.otherwise}}
            .dump();
    write((begun_ ? ",\n" : "{\"facts\":[\n") + head.substr(0, head.size() - 1));
    begun_ = true;
  }
  void answered(const Fact& fact) {
    const std::string rest = Object{{"answer", fact.answer}, {"answered", fact.answered}}.dump();
    write("," + rest.substr(1));
  }
  /// Returns whether everything could be written.
  [[nodiscard]] bool finish() {
    write("\n]}\n");
    return good_;
  }

 private:
  void write(const std::string& text) {
    good_ = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 && good_;
  }

  bool begun_ = false;
  bool good_ = true;
};

}  // namespace

int run_facts(int argc, char** argv) {
  if (argc > 1) throw UsageError("facts takes nothing");
  FactsWriter writer;
  const std::string why = ask_facts({.asked = [&](const Fact& fact) { writer.asked(fact); },
                                     .answered = [&](const Fact& fact) { writer.answered(fact); }});
  if (!why.empty()) {
    std::fprintf(stderr, "%s: no GPU: %s\n", argv[0], why.c_str());
    return 2;
  }
  return writer.finish() ? 0 : 1;
}

}  // namespace weir::gpu_check
