// Text inside XML, as in SVG, in HTML and in the labels of Graphviz.

#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// Returns the text with & < > and " as entities, for content and attributes in double quotes.
// Hidden characters are shown (sim/base/shown_text.h), as most may not stand in XML.
std::string xml_escaped(std::string_view text);

}  // namespace stepsim
