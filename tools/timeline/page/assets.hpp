#pragma once

// The fixed parts of a page. embed.cmake generates them from the files of this folder and from the
// plotting library's package.

#include <string_view>

namespace weir::timeline {

struct Asset {
  std::string_view text;
  std::string_view sha256;  ///< of the text, in hexadecimal
};
extern const Asset kPageHtml;  ///< with placeholders such as `<!--style-->`
extern const Asset kPageCss;
extern const Asset kPageScript;
extern const Asset kPlotScript;  ///< dygraphs

}  // namespace weir::timeline
