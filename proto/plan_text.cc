#include "proto/plan_text.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "proto/key_groups_of_files.h"
#include "proto/messages/message_fields.h"
#include "sim/base/field_text.h"
#include "sim/fields/key_spelling.h"

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

std::string_view example_of(KeyGroup group) {
  switch (group) {
    case KeyGroup::kSoftware:
      return "torchtitan,loss=separate";
    case KeyGroup::kPass:
      return "decode,batch=64,context=8192";
    case KeyGroup::kPlan:
      break;
  }
  return "tp=8,dp=16";
}

}  // namespace

void read_keys_text(std::string_view text, KeyGroup group, file::Plan& plan,
                    ProblemList& problems) {
  const std::string option = "--" + std::string(name_of(group));
  std::set<std::string> seen;
  for (const std::string_view entry : entries_of(text)) {
    const std::size_t equals = entry.find('=');
    std::string field(entry.substr(0, equals));
    const bool is_kind = group == KeyGroup::kPass && seen.empty() && !entry.empty() &&
                         equals == std::string_view::npos;
    std::string_view value = is_kind ? entry : entry.substr(std::min(equals, entry.size() - 1) + 1);
    if (is_kind) field = "inference";
    if ((equals == std::string_view::npos && !is_kind) || field.empty()) {
      problems.add(option, "must be keys and values, as in " + std::string(example_of(group)) +
                               "; has \"" + std::string(entry) + "\"");
      continue;
    }
    if (const std::string meant = with_commas(entry); !meant.empty()) {
      problems.add(option,
                   "has spaces between keys, must have commas; did you mean " + meant + "?");
      continue;
    }
    const std::string key = field;
    field = with_underscores(key);
    if (!seen.insert(field).second) {
      problems.add(option + " " + key, "is given twice");
    } else if (std::string problem = misplaced_key(field, group); !problem.empty()) {
      problems.add(option + " " + key, problem);
      set_field(plan, field, value);  // as it is meant, so that nothing else seems to be missing
    } else if (const auto refusal = set_field(plan, field, value)) {
      problems.add(option + " " + key, *refusal);
      problems.mark_reported(std::string(name_of(group)) + "." + field);
    }
  }
}

KeyTexts split_keys_text(std::string_view text) {
  KeyTexts texts;
  for (const std::string_view entry : entries_of(text)) {
    const std::string key = with_underscores(entry.substr(0, entry.find('=')));
    if (key == "software") {  // its catalog, which stands first
      const std::string name(entry.substr(std::min(entry.find('='), entry.size() - 1) + 1));
      texts.software = name + (texts.software.empty() ? "" : ",") + texts.software;
      continue;
    }
    const WrittenKey written = written_key(key);
    const KeyGroup group = written.group.value_or(KeyGroup::kPlan);
    const std::size_t begin = written.has_group ? key.find('.') + 1 : 0;
    std::string& own = group == KeyGroup::kPlan       ? texts.plan
                       : group == KeyGroup::kSoftware ? texts.software
                                                      : texts.pass;
    own += (own.empty() ? "" : ",") + std::string(entry.substr(begin));
  }
  return texts;
}

}  // namespace stepsim
