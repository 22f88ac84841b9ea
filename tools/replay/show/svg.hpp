#pragma once

// Writes simple shapes as SVG 1.1.

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::replay {

/// Escapes `text` for XML. Replaces all but printable ASCII by `?`.
[[nodiscard]] std::string xml_text(std::string_view text);

struct Place {
  double x = 0, y = 0;
};

class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  /// `look` is a list of attributes: `fill="#fff"`.
  void rectangle(Place corner, double width, double height, std::string_view look);
  void line(Place from, Place to, std::string_view look);
  /// `commands` is the path's `d` attribute.
  void path(std::string_view commands, std::string_view look);
  void text(Place at, std::string_view words, std::string_view look = {});
  /// Returns the completed picture.
  [[nodiscard]] std::string finish();
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }

  /// Formats with one decimal, or none if it is 0.
  [[nodiscard]] static std::string number(double value);

 private:
  std::string text_;
};

}  // namespace weir::replay
