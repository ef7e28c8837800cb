#include "tests/fuzz/dictionary.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "proto/experiment.pb.h"
#include "proto/failures.pb.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/base/field_text.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

using google::protobuf::Descriptor;
using Words = std::set<std::string>;

// `seen`: messages on the way, so that what holds itself ends.
void add_fields(const Descriptor& message, std::set<const Descriptor*>& seen, Words& words) {
  if (!seen.insert(&message).second) return;
  for (int i = 0; i < message.field_count(); ++i) {
    words.insert(message.field(i)->name());
    const Descriptor* const inner = message.field(i)->message_type();
    if (inner != nullptr) add_fields(*inner, seen, words);
  }
}

Words fields_of_message(const Descriptor& message) {
  std::set<const Descriptor*> seen;
  Words words;
  add_fields(message, seen, words);
  return words;
}

// "plan.tp", "model.latent.q_rank": paths of plain fields, without those of lists.
void add_paths(const Descriptor& message, const std::string& before, int depth, Words& words) {
  constexpr int kDeepest = 3;
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    const std::string path = before + field.name();
    const Descriptor* const inner = field.message_type();
    if (inner == nullptr) words.insert(path);
    if (inner != nullptr && !field.is_repeated() && depth < kDeepest) {
      add_paths(*inner, path + ".", depth + 1, words);
    }
  }
}

// The words of "ring, zigzag_ring or ulysses"; none of "a whole number".
void add_accepted(const AnyField& field, Words& words) {
  std::string text = field.accepts();
  const std::size_t last = text.find(" or ");
  if (last == std::string::npos) return;
  text.replace(last, 4, ", ");
  Words found;
  for (std::string_view word : split_text(text, ',')) {
    if (word.starts_with(' ')) word.remove_prefix(1);
    if (word.empty() || word.find(' ') != std::string_view::npos) return;
    found.emplace(word);
  }
  words.merge(found);
}

void add_accepted(const AnyFieldTable& table, Words& words) {
  for (const auto& field : table.fields()) {
    field->fields() == nullptr ? add_accepted(*field, words)
                               : add_accepted(*field->fields(), words);
  }
}

Words accepted_words() {
  Words words;
  for (const AnyField* const key : all_keys()) add_accepted(*key, words);
  add_accepted(model_fields(), words);
  return words;
}

Words names_of_keys() {
  Words names;
  for (const AnyField* const key : all_keys()) names.emplace(key->name());
  return names;
}

Words paths_of_experiment() {
  Words paths;
  add_paths(*file::Experiment::descriptor(), "", 0, paths);
  return paths;
}

// How a target writes a field, around its name, and the words that fields accept.
struct Dictionary {
  std::string_view target;
  Words (*fields)();
  std::string_view before;
  std::string_view behind;
  std::string_view quote;  // of words; a blank: they stand bare; "": the target takes none
};
constexpr std::array kDictionaries = {
    Dictionary{"experiment_text", [] { return fields_of_message(*file::Experiment::descriptor()); },
               "", "", "\""},
    Dictionary{"experiment_json", [] { return fields_of_message(*file::Experiment::descriptor()); },
               "\"", "\":", "\""},
    Dictionary{"cluster", [] { return fields_of_message(*file::Cluster::descriptor()); }, "", "",
               ""},
    Dictionary{"chip", [] { return fields_of_message(*file::Chip::descriptor()); }, "", ": ", ""},
    Dictionary{"library", [] { return fields_of_message(*file::Library::descriptor()); }, "", ": ",
               ""},
    Dictionary{"failures", [] { return fields_of_message(*file::FailureTable::descriptor()); }, "",
               ": ", ""},
    Dictionary{"plan_keys", names_of_keys, "", "=", " "},
    Dictionary{"overrides", paths_of_experiment, "", "=", " "}};

std::string line_of(std::string_view word) {
  std::string line = "\"";
  for (const char c : word) line += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return line + "\"\n";
}

}  // namespace

std::string dictionary_of(std::string_view target) {
  const auto found = std::ranges::find(kDictionaries, target, &Dictionary::target);
  if (found == kDictionaries.end()) return "";
  std::string text;
  for (const std::string& field : found->fields()) {
    text += line_of(std::string(found->before) + field + std::string(found->behind));
  }
  if (found->quote.empty()) return text;
  const std::string quote(found->quote == " " ? "" : found->quote);
  for (const std::string& word : accepted_words()) text += line_of(quote + word + quote);
  return text;
}

}  // namespace stepsim
