#include "sim/base/xml_text.h"

#include "sim/base/shown_text.h"

namespace stepsim {

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char character : shown_text(text)) {
    switch (character) {
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
        escaped += character;
    }
  }
  return escaped;
}

}  // namespace stepsim
