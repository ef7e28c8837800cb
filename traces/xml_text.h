// Text inside XML, as in SVG.

#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// Returns the text with & < > and " as entities, for content and attributes in double quotes.
std::string xml_escaped(std::string_view text);

}  // namespace stepsim
