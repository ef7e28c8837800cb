#include "import/settings/settings_files.h"

#include <fmt/format.h>

#include <cctype>
#include <limits>
#include <utility>

#include "import/input_bytes.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"

namespace stepsim {
namespace {

constexpr int kMostHops = 20;  // of references to references

// ---- JSON ----

class JsonSettings {
 public:
  explicit JsonSettings(SettingsBuilder& builder) : builder_(&builder) {}

  void add(const std::string& name, const Json& value) {
    const bool is_list = value.is_array();
    if (!value.is_object() && !(is_list && has_groups(value))) {
      builder_->add(name, value, 0);
      return;
    }
    if (!builder_->open(name)) return;
    std::size_t index = 0;
    for (const auto& [key, member] : value.items()) {
      add(is_list ? std::to_string(index++) : key, member);
      if (!builder_->problem().empty()) return;
    }
    builder_->close();
  }

 private:
  static bool has_groups(const Json& list) {
    for (const Json& element : list) {
      if (element.is_structured()) return true;
    }
    return false;
  }

  SettingsBuilder* builder_;
};

// ---- references ----

std::string_view trimmed_reference(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

class References {
 public:
  explicit References(const Settings& settings) : settings_(&settings) {}

  // Returns the value of a text ${...}; nullopt if it can't be told.
  std::optional<Json> value_of(std::string_view text, const std::string& key, int hops) const {
    text = trimmed_reference(text);
    if (!text.starts_with("${") || !text.ends_with("}") || hops > kMostHops) return std::nullopt;
    const std::string_view inner = text.substr(2, text.size() - 3);
    const std::size_t colon = inner.find(':');
    if (colon != std::string_view::npos) {
      return computed(inner.substr(0, colon), inner.substr(colon + 1), key, hops);
    }
    if (inner.find_first_of("${}") != std::string_view::npos) return std::nullopt;
    const Setting* const found = settings_->find(absolute(inner, key));
    if (found == nullptr) return std::nullopt;
    if (!found->value.is_string()) return found->value;
    const std::string& value = found->value.get_ref<const std::string&>();
    if (value.find("${") == std::string::npos) return found->value;
    return value_of(value, found->key, hops + 1);
  }

 private:
  // One dot before a name: beside the key; each further dot one group up.
  static std::string absolute(std::string_view name, const std::string& key) {
    if (!name.starts_with('.')) return std::string(name);
    std::string group = key;
    while (name.starts_with('.')) {
      const std::size_t dot = group.rfind('.');
      group = dot == std::string::npos ? "" : group.substr(0, dot);
      name.remove_prefix(1);
    }
    return (group.empty() ? "" : group + ".").append(name);
  }

  std::optional<Json> computed(std::string_view function, std::string_view arguments,
                               const std::string& key, int hops) const {
    std::vector<std::int64_t> numbers;
    std::size_t depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= arguments.size(); ++i) {
      const char c = i < arguments.size() ? arguments[i] : ',';
      if (c == '{') ++depth;
      if (c == '}' && depth > 0) --depth;
      if (c != ',' || (depth > 0 && i < arguments.size())) continue;
      const std::string_view part = trimmed_reference(arguments.substr(begin, i - begin));
      begin = i + 1;
      std::optional<std::int64_t> number = number_in<std::int64_t>(part);
      if (!number) {
        const std::optional<Json> value = value_of(part, key, hops + 1);
        if (value && value->is_number_integer()) number = value->get<std::int64_t>();
        if (value && value->is_string()) {
          number = number_in<std::int64_t>(value->get_ref<const std::string&>());
        }
      }
      if (!number || numbers.size() > kMostHops) return std::nullopt;
      numbers.push_back(*number);
    }
    return result_of(function, numbers);
  }

  static std::optional<Json> result_of(std::string_view function,
                                       const std::vector<std::int64_t>& numbers) {
    if (numbers.empty()) return std::nullopt;
    std::int64_t result = numbers[0];
    for (std::size_t i = 1; i < numbers.size(); ++i) {
      const std::int64_t next = numbers[i];
      bool is_bad = false;
      if (function == "multiply") {
        is_bad = __builtin_mul_overflow(result, next, &result);
      } else if (function == "sum" || function == "add") {
        is_bad = __builtin_add_overflow(result, next, &result);
      } else if (function == "divide" || function == "int_div") {
        is_bad = next <= 0;
        if (!is_bad) result /= next;
      } else {
        return std::nullopt;
      }
      if (is_bad) return std::nullopt;
    }
    if (function != "multiply" && function != "sum" && function != "add" && function != "divide" &&
        function != "int_div") {
      return std::nullopt;
    }
    return Json(result);
  }

  const Settings* settings_;
};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == '+' || c == '~';
}

}  // namespace

void read_json_settings(std::string_view text, const std::string& file, Settings& settings,
                        std::vector<Problem>& problems) {
  const JsonOrProblem read = parse_json(text);
  if (!read.value) {
    problems.push_back({file, read.problem});
    return;
  }
  if (!read.value->is_object()) {
    problems.push_back({file, "must be an object, is " + shown(*read.value)});
    return;
  }
  SettingsBuilder builder(settings, file);
  JsonSettings reader(builder);
  for (const auto& [key, value] : read.value->items()) reader.add(key, value);
  if (!builder.problem().empty()) problems.push_back({file, builder.problem()});
}

void resolve_references(Settings& settings) {
  const References references(settings);
  std::vector<Setting> resolved;
  for (const Setting* const setting : settings.all()) {
    if (!setting->value.is_string()) continue;
    const std::string& value = setting->value.get_ref<const std::string&>();
    if (value.find("${") == std::string::npos) continue;
    std::optional<Json> found = references.value_of(value, setting->key, 0);
    if (!found) continue;
    resolved.push_back(*setting);
    resolved.back().value = std::move(*found);
  }
  for (Setting& setting : resolved) settings.set(std::move(setting));
}

std::optional<std::string> read_settings_text(const std::string& path,
                                              std::vector<Problem>& problems) {
  std::optional<std::string> text = read_bytes(path, problems, InputKind::kText);
  if (!text) return std::nullopt;
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    problems.push_back({path, "is empty"});
    return std::nullopt;
  }
  if (text->find('\0') != std::string::npos) {
    problems.push_back({path, "is no text: it has bytes of value 0"});
    return std::nullopt;
  }
  return text;
}

bool is_override(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  for (const char c : word.substr(0, equals)) {
    if (!is_name_character(c)) return false;
  }
  return true;
}

void apply_override(std::string_view word, Settings& settings) {
  const std::size_t equals = word.find('=');
  std::string_view name = word.substr(0, equals);
  while (name.starts_with('-') || name.starts_with('+') || name.starts_with('~')) {
    name.remove_prefix(1);
  }
  std::string_view value = word.substr(equals + 1);
  Setting setting;
  setting.key = std::string(name);
  setting.name = std::string(name);
  setting.place = "KEY=VALUE";
  setting.value = std::string(value);
  if (value.starts_with('[') && value.ends_with(']')) {
    setting.value = Json::array();
    value = value.substr(1, value.size() - 2);
    for (const std::string_view part : split_text(value, ',')) {
      if (!part.empty()) setting.value.push_back(std::string(trimmed_reference(part)));
    }
  }
  settings.set(std::move(setting));
}

}  // namespace stepsim
