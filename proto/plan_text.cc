#include "proto/plan_text.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "proto/message_fields.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

// Splits "tp=8,layout=7,8*14,7" into "tp=8" and "layout=7,8*14,7": a layout contains commas itself.
std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  for (const std::string_view part : split_text(text, ',')) {
    const bool continues = !entries.empty() && entries.back().starts_with("layout=") &&
                           part.find('=') == std::string_view::npos;
    if (!continues) {
      entries.push_back(part);
    } else {
      const char* begin = entries.back().data();
      entries.back() = {begin, static_cast<std::size_t>(part.data() + part.size() - begin)};
    }
  }
  return entries;
}

// Writes "tp=8 dp=16" with commas between the keys; "" if the entry holds one key.
std::string with_commas(std::string_view entry) {
  std::string joined;
  std::size_t keys = 0;
  for (const std::string_view word : split_text(entry, ' ')) {
    if (word.empty()) continue;
    if (word.find('=') != std::string_view::npos) ++keys;
    joined += (joined.empty() ? "" : ",") + std::string(word);
  }
  return keys > 1 ? joined : "";
}

}  // namespace

void read_plan_text(std::string_view text, file::Plan& plan, ProblemList& problems) {
  std::set<std::string> seen;
  for (const std::string_view entry : entries_of(text)) {
    const std::size_t equals = entry.find('=');
    const std::string key(entry.substr(0, equals));
    if (equals == std::string_view::npos || key.empty()) {
      problems.add("--plan",
                   "must be keys and values, as in tp=8,dp=16; has \"" + std::string(entry) + "\"");
      continue;
    }
    if (const std::string meant = with_commas(entry); !meant.empty()) {
      problems.add("--plan",
                   "has spaces between keys, must have commas; did you mean " + meant + "?");
      continue;
    }
    std::string field = key;
    std::replace(field.begin(), field.end(), '-', '_');
    if (!seen.insert(field).second) {
      problems.add("--plan " + key, "is given twice");
    } else if (const auto problem = set_field(plan, field, entry.substr(equals + 1))) {
      problems.add("--plan " + key, *problem);
      problems.mark_reported("plan." + field);
    }
  }
}

}  // namespace stepsim
