#pragma once

// The few shapes that pictures are made of, as SVG 1.1.

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::replay {

/// `text` as XML has it, what is not printable ASCII as `?`.
[[nodiscard]] std::string xml_text(std::string_view text);

struct Place {
  double x = 0, y = 0;
};

class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  /// `look` is attributes: `fill="#fff"`.
  void rectangle(Place corner, double width, double height, std::string_view look);
  void line(Place from, Place to, std::string_view look);
  /// `commands` is what a path's `d` holds.
  void path(std::string_view commands, std::string_view look);
  void text(Place at, std::string_view words, std::string_view look = {});
  /// The picture, once nothing more comes.
  [[nodiscard]] std::string finish();
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }

  /// With a digit behind the point, and none where that is 0.
  [[nodiscard]] static std::string number(double value);

 private:
  std::string text_;
};

}  // namespace weir::replay
