#pragma once

// Writes simple shapes as SVG 1.1.

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::picture {

/// Colours that people with any colour vision tell apart (Okabe and Ito 2008).
inline constexpr std::string_view kOrange = "#d55e00";
inline constexpr std::string_view kBlue = "#0072b2";
inline constexpr std::string_view kGreen = "#009e73";
inline constexpr std::string_view kPink = "#cc79a7";
inline constexpr std::string_view kYellow = "#e69f00";
inline constexpr std::string_view kSky = "#56b4e9";

/// Escapes `text` for XML. Replaces all but printable ASCII by `?`.
[[nodiscard]] std::string xml_text(std::string_view text);

struct Place {
  double x = 0, y = 0;
};

/// A document. `look` is a list of attributes: `fill="#fff"`.
class Svg {
 public:
  Svg(double width, double height, std::string_view title, int font_size = 11);

  /// What is drawn until `end_group` shows `title` where a mouse points at it.
  void begin_group(std::string_view title);
  void end_group();

  void rectangle(Place corner, double width, double height, std::string_view look);
  void line(Place from, Place to, std::string_view look);
  /// `commands` is the path's `d` attribute.
  void path(std::string_view commands, std::string_view look);
  void text(Place at, std::string_view words, std::string_view look = {});
  /// Writes upwards, with its middle at `at`.
  void text_upwards(Place at, std::string_view words);
  /// Returns the completed picture.
  [[nodiscard]] std::string finish();
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }

  /// Formats with one decimal, or none if it is 0.
  [[nodiscard]] static std::string number(double value);

 private:
  std::string text_;
};

}  // namespace weir::picture
