#include "tools/weir/doctor/report.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/program/colour.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/printable.hpp"

namespace weir::cli::doctor {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kColumns = 80;
constexpr std::array kUses{Use::kRun,        Use::kPlug, Use::kTrainGpu, Use::kTrainCpu,
                           Use::kDeviceWork, Use::kLive, Use::kShare};

struct Uses {
  std::vector<Use> work;
  std::vector<Use> do_not;
};

Uses uses_in(const Report& report) {
  Uses uses;
  for (const Use use : kUses) {
    if (use == Use::kPlug && !report.has_torch) continue;
    const bool broken = std::ranges::any_of(report.findings, [use](const Finding& finding) {
      return std::ranges::count(finding.breaks, use) != 0;
    });
    (broken ? uses.do_not : uses.work).push_back(use);
  }
  return uses;
}

std::size_t count(const Report& report, State state) {
  return static_cast<std::size_t>(std::ranges::count(report.findings, state, &Finding::state));
}

Colour colour_of(State state) {
  switch (state) {
    case State::kOk:
      return Colour::kGreen;
    case State::kWarn:
      return Colour::kYellow;
    case State::kFails:
      break;
  }
  return Colour::kRed;
}

/// Returns `text` in lines, each but the first after `indent` blanks. The first begins in column
/// `indent`, behind what is printed there.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t width = columns_of(word);
    if (column != indent && column + 1 + width > kColumns) {
      lines.append("\n").append(indent, ' ');
      column = indent;
    }
    if (column != indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += width;
  }
  return lines + "\n";
}

/// For a terminal: values of variables and names of folders are anybody's.
std::string shown(const Report& report, std::string_view text) {
  return printable(redacted(text, report.whose), true);
}

std::string finding_text(const Report& report, const Finding& finding, bool in_colour) {
  constexpr std::size_t kIndent = 9;  // "  fails  "
  std::string state(to_string(finding.state));
  const std::string blanks(kIndent - 2 - state.size(), ' ');
  if (in_colour) state = coloured(state, colour_of(finding.state));
  std::string text = "  " + state + blanks + wrapped(shown(report, finding.text), kIndent);
  if (finding.remedy.empty()) return text;
  constexpr std::string_view kFix = "fix: ";
  return text + std::string(kIndent, ' ') + std::string(kFix) +
         wrapped(shown(report, finding.remedy), kIndent + kFix.size());
}

std::string joined(const std::vector<Use>& uses) {
  std::string text;
  for (const Use use : uses) text.append(text.empty() ? "" : ", ").append(described(use));
  return text.empty() ? "nothing" : text;
}

Json names(const std::vector<Use>& uses) {
  Json all = Json::array();
  for (const Use use : uses) all.push_back(to_string(use));
  return all;
}

}  // namespace

std::string summary(const Report& report) {
  const Uses uses = uses_in(report);
  const std::string_view where = report.is_standin ? ", on the stand-in driver and no GPU" : "";
  return "Works here" + std::string(where) + ": " + joined(uses.work) +
         "; does not: " + joined(uses.do_not) + ".";
}

int exit_code(const Report& report) { return count(report, State::kFails) != 0 ? 1 : 0; }

std::string report_text(const Report& report, bool in_colour) {
  std::string text = "weir " + report.version + "\n";
  const Group* last = nullptr;
  for (const Finding& finding : report.findings) {
    if (last == nullptr || *last != finding.group) {
      const std::string_view name = to_string(finding.group);
      text += "\n" + (in_colour ? coloured(name, Colour::kBold) : std::string(name)) + "\n";
    }
    last = &finding.group;
    text += finding_text(report, finding, in_colour);
  }
  const std::size_t fails = count(report, State::kFails);
  const std::size_t warns = count(report, State::kWarn);
  const std::string counts = format_count(fails, "check") + (fails == 1 ? " fails, " : " fail, ") +
                             std::to_string(warns) + (warns == 1 ? " warns." : " warn.");
  return text + "\n" + counts + "\n" + wrapped(summary(report), 0);
}

std::string report_json(const Report& report) {
  const Uses uses = uses_in(report);
  Json json{{"weir", report.version},         {"ok", exit_code(report) == 0},
            {"standin", report.is_standin},   {"works", names(uses.work)},
            {"does_not", names(uses.do_not)}, {"findings", Json::array()},
            {"variables", Json::object()}};
  for (const Finding& finding : report.findings) {
    json["findings"].push_back({{"group", to_string(finding.group)},
                                {"check", finding.check},
                                {"state", to_string(finding.state)},
                                {"text", redacted(finding.text, report.whose)},
                                {"remedy", redacted(finding.remedy, report.whose)}});
  }
  for (const auto& [name, value] : report.variables) {
    json["variables"][name] = redacted(value, report.whose);
  }
  return json_text(json);
}

}  // namespace weir::cli::doctor
