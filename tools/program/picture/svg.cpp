#include "tools/program/picture/svg.hpp"

#include <cmath>
#include <utility>

#include "tools/program/numbers.hpp"

namespace weir::picture {
namespace {

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + Svg::number(value) + "\"";
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return escaped;
}

std::string Svg::number(double value) {
  const double rounded = std::round(value * 10) / 10;
  return format_number(rounded, rounded == std::round(rounded) ? 0 : 1);
}

Svg::Svg(double width, double height, std::string_view title, int font_size) {
  const std::string size = number(width) + " " + number(height);
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
          attribute("height", height) + " viewBox=\"0 0 " + size +
          R"(" font-family="sans-serif" font-size=")" + std::to_string(font_size) +
          "\" fill=\"#222\">\n<title>" + xml_text(title) + "</title>\n";
  rectangle({0, 0}, width, height, "fill=\"#fff\"");
}

void Svg::begin_group(std::string_view title) {
  text_ += "<g><title>" + xml_text(title) + "</title>\n";
}

void Svg::end_group() { text_ += "</g>\n"; }

void Svg::rectangle(Place corner, double width, double height, std::string_view look) {
  text_ += "<rect" + attribute("x", corner.x) + attribute("y", corner.y) +
           attribute("width", width) + attribute("height", height) + " " + std::string(look) +
           "/>\n";
}

void Svg::line(Place from, Place to, std::string_view look) {
  text_ += "<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) +
           attribute("y2", to.y) + " " + std::string(look) + "/>\n";
}

void Svg::path(std::string_view commands, std::string_view look) {
  text_ += "<path d=\"" + std::string(commands) + "\" " + std::string(look) + "/>\n";
}

void Svg::text(Place at, std::string_view words, std::string_view look) {
  text_ += "<text" + attribute("x", at.x) + attribute("y", at.y) + (look.empty() ? "" : " ") +
           std::string(look) + ">" + xml_text(words) + "</text>\n";
}

void Svg::text_upwards(Place at, std::string_view words) {
  text({0, 0}, words,
       R"(text-anchor="middle" transform="translate()" + number(at.x) + " " + number(at.y) +
           ") rotate(-90)\"");
}

std::string Svg::finish() { return std::exchange(text_, {}) + "</svg>\n"; }

}  // namespace weir::picture
