#include "tools/weir/doctor/report.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/program/colour.hpp"
#include "tools/program/json_text.hpp"
#include "tools/program/numbers.hpp"
#include "tools/program/printable.hpp"
#include "tools/program/report_table.hpp"

namespace weir::cli::doctor {
namespace {

using Json = nlohmann::json;

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

/// Whether a part of a path ends at `at`.
bool ends_at(std::string_view text, std::size_t at) {
  if (at == text.size() || !is_of_name(text[at])) return true;
  // A full stop ends the sentence.
  return text[at] == '.' && (at + 1 == text.size() || text[at + 1] == ' ');
}

/// The place where the path around `at` begins.
std::size_t path_begin(std::string_view text, std::size_t at) {
  while (at != 0 && (is_of_name(text[at - 1]) || text[at - 1] == '/' || text[at - 1] == '~')) --at;
  return at;
}

bool is_systems(std::string_view path) {
  constexpr std::array<std::string_view, 7> kFolders{"/usr/",  "/opt/", "/lib",  "/bin/",
                                                     "/sbin/", "/dev/", "/proc/"};
  return std::ranges::any_of(kFolders, [path](auto folder) { return path.starts_with(folder); });
}

void replace_home(std::string& text, std::string home) {
  while (home.size() > 1 && home.ends_with('/')) home.pop_back();
  if (home.size() < 2 || is_systems(home + "/")) return;  // "/" is everybody's
  for (std::size_t at = 0; (at = text.find(home, at)) != std::string::npos; ++at) {
    const bool begins = at == 0 || !is_of_name(text[at - 1]);
    if (begins && ends_at(text, at + home.size())) text.replace(at, home.size(), "~");
  }
}

void replace_folder(std::string& text, const std::string& name, std::string_view by) {
  if (name.empty()) return;
  const std::string folder = "/" + name;
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos; ++at) {
    const std::string_view path = std::string_view(text).substr(path_begin(text, at));
    if (!ends_at(text, at + folder.size()) || is_systems(path)) continue;
    text.replace(at + 1, name.size(), by);
  }
}

constexpr std::size_t kColumns = 80;
/// Of each state.
constexpr std::array kColours{Colour::kGreen, Colour::kYellow, Colour::kRed};
/// Each use, for people.
constexpr auto kDescribed = name_table(
    "GPU programs under weir run", "PyTorch's plug", "weir-train on a GPU", "weir-train on the cpu",
    "the device's work in timelines", "a budget shared by processes");

struct Uses {
  std::vector<Use> work;
  std::vector<Use> do_not;
};

Uses uses_in(const Report& report) {
  Uses uses;
  for (std::size_t i = 0; i < kDescribed.size(); ++i) {
    const auto use = static_cast<Use>(i);
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

/// For a terminal: values of variables and names of folders are anybody's.
std::string shown(const Report& report, std::string_view text) {
  return printable(redacted(text, report.whose), true);
}

/// Returns the text in lines behind `begin`, which takes up `columns`.
std::string behind(const std::string& begin, std::size_t columns, std::string_view text) {
  std::string lines = wrapped(std::string(columns, ' ').append(text), columns, kColumns);
  return lines.replace(0, columns, begin);
}

std::string finding_text(const Report& report, const Finding& finding, bool in_colour) {
  constexpr std::size_t kIndent = 9;  // "  fails  "
  std::string state(to_string(finding.state));
  const std::string blanks(kIndent - 2 - state.size(), ' ');
  if (in_colour) state = coloured(state, kColours[static_cast<std::size_t>(finding.state)]);
  std::string text = behind("  " + state + blanks, kIndent, shown(report, finding.text));
  if (finding.remedy.empty()) return text;
  const std::string fix = std::string(kIndent, ' ') + "fix: ";
  return text + behind(fix, fix.size(), shown(report, finding.remedy));
}

std::string joined(const std::vector<Use>& uses) {
  std::string text;
  for (const Use use : uses)
    text.append(text.empty() ? "" : ", ").append(kDescribed[static_cast<std::size_t>(use)]);
  return text.empty() ? "nothing" : text;
}

Json names(const std::vector<Use>& uses) {
  Json all = Json::array();
  for (const Use use : uses) all.push_back(to_string(use));
  return all;
}

}  // namespace

std::string redacted(std::string_view text, const Private& whose) {
  std::string shown(text);
  for (const std::string& home : whose.homes) replace_home(shown, home);
  replace_folder(shown, whose.user, "USER");
  replace_folder(shown, whose.host, "HOST");
  return shown;
}

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
  return text + "\n" + counts + "\n" + wrapped(summary(report), 0, kColumns);
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
