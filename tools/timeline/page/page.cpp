#include "tools/timeline/page/page.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "tools/timeline/page/data.hpp"
#include "tools/timeline/page/tables.hpp"

namespace weir::timeline {
namespace {

[[nodiscard]] std::string escape_html(std::string_view text) {
  std::string out;
  for (const char one : text) {
    switch (one) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += one;
    }
  }
  return out;
}

[[nodiscard]] std::uint8_t digit(char hex) {
  return static_cast<std::uint8_t>(hex <= '9' ? hex - '0' : hex - 'a' + 10);
}

// Returns the script's hash as a Content-Security-Policy source.
[[nodiscard]] std::string source_of(const Asset& script) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < script.sha256.size(); i += 2) {
    bytes.push_back(static_cast<char>(digit(script.sha256[i]) << 4U | digit(script.sha256[i + 1])));
  }
  return "'sha256-" + base64(bytes) + "'";
}

// Loads nothing from anywhere, and runs only the page's two scripts.
[[nodiscard]] std::string policy() {
  return "default-src 'none'; style-src 'unsafe-inline'; script-src " + source_of(kPlotScript) +
         " " + source_of(kPageScript) +
         "; connect-src 'none'; img-src data:; base-uri 'none'; form-action 'none'";
}

std::string title_of(const Timeline& timeline) {
  std::vector<std::string> programs;
  for (const Process& process : timeline.processes) {
    const std::string& program = process.info.program;
    if (program.empty() || std::ranges::count(programs, program) != 0) continue;
    programs.push_back(program);
  }
  std::string title = "Weir timeline";
  for (const std::string& program : programs) {
    title += (&program == programs.data() ? " of " : ", ") + program;
  }
  return title;
}

}  // namespace

std::string make_page(const Timeline& timeline, const PageOptions& options) {
  const std::size_t fixed = kPageHtml.text.size() + kPageCss.text.size() + kPageScript.text.size() +
                            kPlotScript.text.size() + 1024;
  const std::string data =
      page_data(timeline, options.max_bytes - std::min(options.max_bytes, fixed));
  const std::string title =
      escape_html(shorten(options.title.empty() ? title_of(timeline) : options.title, 400));
  const std::string csp = policy();
  // In the order of the page. Inserted text is not searched.
  const std::array<std::pair<std::string_view, std::string_view>, 7> parts{{
      {"<!--policy-->", csp},
      {"<!--title-->", title},
      {"<!--style-->", kPageCss.text},
      {"<!--title-->", title},
      {"<!--data-->", data},
      {"<!--plot-->", kPlotScript.text},
      {"<!--script-->", kPageScript.text},
  }};
  std::string out;
  out.reserve(fixed + data.size());
  std::string_view rest = kPageHtml.text;
  for (const auto& [place, text] : parts) {
    const std::size_t at = rest.find(place);
    if (at == std::string_view::npos) throw Error("page.html lacks " + std::string(place));
    out.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + place.size());
  }
  out += rest;
  return out;
}

}  // namespace weir::timeline
