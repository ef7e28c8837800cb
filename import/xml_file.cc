#include "import/xml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "import/input_bytes.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr int kMostXmlDepth = 64;

// Walks along the tree without recursion.
bool is_deeper(pugi::xml_node root, int most) {
  int depth = 0;
  for (pugi::xml_node at = root; at;) {
    if (depth > most) return true;
    if (at.first_child()) {
      at = at.first_child();
      ++depth;
      continue;
    }
    while (at != root && !at.next_sibling()) {
      at = at.parent();
      --depth;
    }
    if (at == root) return false;
    at = at.next_sibling();
  }
  return false;
}

}  // namespace

XmlFile::XmlFile(const std::string& path, std::vector<Problem>& problems)
    : file_(short_name(path)), problems_(problems) {
  const std::optional<std::string> text = read_bytes(path, problems, InputKind::kTable);
  if (!text) return;
  lines_.push_back(0);
  for (std::size_t at = 0; (at = text->find('\n', at)) != std::string::npos;) {
    lines_.push_back(++at);
  }
  const pugi::xml_parse_result result =
      document_.load_buffer(text->data(), text->size(), pugi::parse_escapes | pugi::parse_eol);
  if (result) {
    if (!is_deeper(document_, kMostXmlDepth)) return;
    problems.push_back({file_, fmt::format("nests elements more than {} deep", kMostXmlDepth)});
  } else {
    const auto line = std::ranges::upper_bound(lines_, static_cast<std::size_t>(result.offset));
    problems.push_back({fmt::format("{}:{}", file_, line - lines_.begin()),
                        std::string("must be XML: ") + result.description()});
  }
  document_.reset();
}

std::string XmlFile::place(pugi::xml_node node) const {
  const auto at = static_cast<std::size_t>(std::max<std::ptrdiff_t>(node.offset_debug(), 0));
  return fmt::format("{}:{}", file_, std::ranges::upper_bound(lines_, at) - lines_.begin());
}

void XmlFile::refuse(pugi::xml_node node, std::string message) {
  if (problems_.size() < kMostXmlProblems) problems_.push_back({place(node), std::move(message)});
}

std::string_view XmlFile::text(pugi::xml_node node, const char* attribute) {
  std::string_view text = node.attribute(attribute).value();
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::int64_t XmlFile::number(pugi::xml_node node, const char* attribute, std::int64_t low,
                             std::int64_t high, std::optional<std::int64_t> missing) {
  const std::string_view value = text(node, attribute);
  if (value.empty() && missing) return *missing;
  const auto read = number_in<std::int64_t>(value);
  if (read && *read >= low && *read <= high) return *read;
  refuse(node, fmt::format("{} of {} must be a whole number, {} to {}, is \"{}\"", attribute,
                           shortened(node.name()), low, high, shortened(value)));
  return low;
}

}  // namespace stepsim
