#include "import/exports/exported_settings.h"

#include <algorithm>

namespace stepsim {
namespace {

struct SettingGroup {
  std::string name;  // "parallelism"; empty: no group
  std::vector<std::pair<std::string, const Json*>> values;
};

std::vector<SettingGroup> groups_of(const ExportedSettings& settings) {
  std::vector<SettingGroup> groups;
  for (const ExportedSetting& setting : settings.all()) {
    const std::size_t dot = setting.key.rfind('.');
    const std::string name = dot == std::string::npos ? "" : setting.key.substr(0, dot);
    auto group = std::ranges::find(groups, name, &SettingGroup::name);
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->values.emplace_back(setting.key.substr(name.empty() ? 0 : dot + 1), &setting.value);
  }
  return groups;
}

// A word of a shell, in quotes if it needs them.
std::string shell_word(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./,";
  return text.find_first_not_of(kPlain) == std::string::npos ? text : '\'' + text + '\'';
}

std::string shell_words(const Json& value) {
  if (!value.is_array()) return ' ' + shell_word(value);
  std::string words;
  for (const Json& each : value) words += ' ' + shell_word(each);
  return words;
}

}  // namespace

// JSON's truth values, numbers, texts and lists are also those of TOML and YAML.
std::string toml_of(const ExportedSettings& settings) {
  std::string text;
  for (const SettingGroup& group : groups_of(settings)) {
    if (!group.name.empty()) text += (text.empty() ? "[" : "\n[") + group.name + "]\n";
    for (const auto& [key, value] : group.values) text += key + " = " + json_text(*value) + '\n';
  }
  return text;
}

std::string yaml_of(const ExportedSettings& settings) {
  std::string text;
  for (const SettingGroup& group : groups_of(settings)) {
    const std::string indent = group.name.empty() ? "" : "  ";
    if (!group.name.empty()) text += group.name + ":\n";
    for (const auto& [key, value] : group.values) {
      text += indent + key + ": " + json_text(*value) + '\n';
    }
  }
  return text;
}

std::string flags_of(const ExportedSettings& settings,
                     std::string (*flag_of)(std::string_view key, bool is_off)) {
  std::string text;
  for (const auto& [key, value] : settings.all()) {
    const bool is_switch = value.is_boolean();
    const std::string flag = flag_of(key, is_switch && !value.get<bool>());
    if (flag.empty()) continue;
    text += " \\\n  --" + flag + (is_switch ? "" : shell_words(value));
  }
  return text;
}

}  // namespace stepsim
