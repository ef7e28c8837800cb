// Reads XML of other software: elements and attributes. Entities of a file's own are not expanded
// and no other file is opened (pugixml skips the document type); elements are nested 64 deep at
// most.

#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

class XmlFile {
 public:
  // Adds a problem if the file can't be read or is no XML; then root() is empty.
  XmlFile(const std::string& path, std::vector<Problem>& problems);

  pugi::xml_node root() const { return document_.document_element(); }
  // Returns "topology.xml:12".
  std::string place(pugi::xml_node node) const;
  void refuse(pugi::xml_node node, std::string message);

  // Returns the attribute without blanks and ends of lines around it; empty if there is none.
  static std::string_view text(pugi::xml_node node, const char* attribute);
  // Returns the whole number, from low to high. `missing`: what stands for none; unset: it must be
  // given.
  std::int64_t number(pugi::xml_node node, const char* attribute, std::int64_t low,
                      std::int64_t high, std::optional<std::int64_t> missing = {});

 private:
  std::string file_;
  std::vector<Problem>& problems_;
  pugi::xml_document document_;
  std::vector<std::size_t> lines_;  // where each begins
};

inline constexpr std::size_t kMostXmlProblems = 20;

}  // namespace stepsim
