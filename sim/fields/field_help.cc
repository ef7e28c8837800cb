#include "sim/fields/field_help.h"

#include <algorithm>

#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

constexpr std::size_t kColumns = 80;

// Documented is a field with the path by which a person sets it.
struct Documented {
  std::string path;
  const AnyField* field;
  std::optional<std::string> usual;
};

void collect(const AnyFieldTable& table, const std::string& prefix, std::size_t first,
             std::size_t end, std::vector<Documented>& result) {
  for (std::size_t i = first; i < end; ++i) {
    const AnyField& field = *table.fields()[i];
    const std::string path = prefix + std::string(field.name());
    result.push_back({path, &field, table.default_of(field)});
    const AnyFieldTable* inner = field.fields();
    if (inner != nullptr && field.doc().see.empty()) {
      const std::string of = path + (field.is_list() ? "[i]." : ".");
      collect(*inner, of, 0, inner->fields().size(), result);
    }
  }
}

struct Section {
  FieldTheme theme;
  std::vector<Documented> fields;
};

std::vector<Section> sections_of(const AnyFieldTable& table) {
  std::vector<FieldTheme> themes = table.themes();
  if (themes.empty() || themes.front().first > 0) themes.insert(themes.begin(), {"", "", 0});
  std::vector<Section> sections;
  for (std::size_t i = 0; i < themes.size(); ++i) {
    const std::size_t end = i + 1 < themes.size() ? themes[i + 1].first : table.fields().size();
    Section& section = sections.emplace_back(Section{themes[i], {}});
    collect(table, "", themes[i].first, end, section.fields);
  }
  return sections;
}

std::string default_text(const Documented& documented) {
  const FieldDoc& doc = documented.field->doc();
  if (doc.required) return "must be given";
  if (documented.field->is_list()) return "default: none";
  if (documented.field->fields() != nullptr) return "";
  if (!documented.usual || documented.usual->empty()) {
    return "default: " + (doc.unset.empty() ? "not set" : std::string(doc.unset));
  }
  return "default: " + *documented.usual;
}

// Returns "a whole number, 1 to 1048576" or "a list of groups".
std::string kind_text(const AnyField& field) {
  if (!field.doc().see.empty()) {
    return "a group; `" + std::string(field.doc().see) + "` lists its fields";
  }
  if (field.is_list()) return "a list; fields of an element below";
  if (field.fields() != nullptr) return "a group of fields, below";
  const std::string range = text_of(field.limits());
  if (!field.limits().choices.empty()) return range;
  std::string text = field.accepts() + (range.empty() ? "" : ", " + range);
  if (field.limits().zero_unsets) text += "; 0: as if left out";
  return text;
}

void add_wrapped(std::string_view text, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(" \n");
    const std::string_view word = text.substr(0, end);
    if (column > 0 && column + 1 + word.size() > kColumns) {
      out += '\n';
      column = 0;
    }
    if (!word.empty()) {
      out += column == 0 ? margin : " ";
      out += word;
      column = column == 0 ? indent + word.size() : column + 1 + word.size();
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  out += '\n';
}

std::string text_of(const Documented& documented) {
  const FieldDoc& doc = documented.field->doc();
  std::string out = "  " + documented.path + "\n";
  add_wrapped("(" + kind_text(*documented.field) + "; " + default_text(documented) + ")", 6, out);
  for (const std::string_view paragraph : {doc.help, doc.advice}) {
    if (!paragraph.empty()) add_wrapped(paragraph, 6, out);
  }
  if (!doc.rules.empty()) add_wrapped("Rules: " + std::string(doc.rules), 6, out);
  return out;
}

std::string markdown_of(const Documented& documented) {
  const FieldDoc& doc = documented.field->doc();
  std::string out = "### `" + documented.path + "`\n\n";
  const std::string usual = default_text(documented);
  out += "Value: " + kind_text(*documented.field) + (usual.empty() ? "" : "; " + usual) + "\n";
  for (const std::string_view paragraph : {doc.help, doc.advice}) {
    if (!paragraph.empty()) out += "\n" + std::string(paragraph) + "\n";
  }
  if (!doc.rules.empty()) out += "\nRules: " + std::string(doc.rules) + "\n";
  return out;
}

}  // namespace

std::string help_text_of(const AnyFieldTable& table) {
  std::string out;
  for (const Section& section : sections_of(table)) {
    if (section.fields.empty()) continue;
    if (!out.empty()) out += "\n";
    if (!section.theme.title.empty()) out += std::string(section.theme.title) + "\n\n";
    if (!section.theme.introduction.empty()) {
      add_wrapped(section.theme.introduction, 2, out);
      out += "\n";
    }
    for (const Documented& field : section.fields) out += text_of(field) + "\n";
    out.pop_back();
  }
  return out;
}

std::vector<std::string> field_paths(const AnyFieldTable& table) {
  std::vector<std::string> paths;
  for (const Section& section : sections_of(table)) {
    for (const Documented& field : section.fields) paths.push_back(field.path);
  }
  return paths;
}

std::optional<std::string> help_text_of(const AnyFieldTable& table, std::string_view name) {
  const std::string wanted = with_underscores(name);
  for (const Section& section : sections_of(table)) {
    for (const Documented& field : section.fields) {
      if (field.path == wanted) return text_of(field);
    }
  }
  return std::nullopt;
}

std::string markdown_of(const AnyFieldTable& table) {
  std::string out;
  for (const Section& section : sections_of(table)) {
    if (section.fields.empty()) continue;
    if (!section.theme.title.empty()) out += "## " + std::string(section.theme.title) + "\n\n";
    if (!section.theme.introduction.empty()) {
      out += std::string(section.theme.introduction) + "\n\n";
    }
    for (const Documented& field : section.fields) out += markdown_of(field) + "\n";
  }
  return out;
}

}  // namespace stepsim
