#include "import/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostKey = 1'000;             // characters
constexpr std::size_t kMostKeyBytes = 64ULL << 20;  // of all keys
constexpr double kMostWhole = 9e15;                 // exact in a double

std::string_view trimmed_setting(std::string_view text) {
  const std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Python and YAML write 150_001; both sides of the line must be digits.
std::string without_underscores(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_line =
        text[i] == '_' && i > 0 && i + 1 < text.size() && text[i - 1] >= '0' && text[i - 1] <= '9';
    if (!is_line) plain += text[i];
  }
  if (plain.starts_with('+')) plain.erase(0, 1);
  return plain;
}

std::optional<double> double_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto number =
      number_in<double>(without_underscores(trimmed_setting(value.get_ref<const std::string&>())));
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// Also 1e9, 2.0 and 8192.
std::optional<std::int64_t> integer_of(const Json& value) {
  if (value.is_number_integer()) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > (1ULL << 62))
      return std::nullopt;
    return value.get<std::int64_t>();
  }
  if (value.is_string()) {
    const auto whole = number_in<std::int64_t>(
        without_underscores(trimmed_setting(value.get_ref<const std::string&>())));
    if (whole) return whole;
  }
  const std::optional<double> number = double_of(value);
  if (!number || std::abs(*number) > kMostWhole || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

std::optional<bool> truth_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) {
    if (value == 0) return false;
    if (value == 1) return true;
    return std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  const std::string word = in_small_letters(trimmed_setting(value.get_ref<const std::string&>()));
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return std::nullopt;
}

std::string plain(const Json& value) {
  if (value.is_string()) return std::string(trimmed_setting(value.get_ref<const std::string&>()));
  return json_text(value);
}

}  // namespace

bool is_blank_value(const Json& value) {
  if (value.is_null()) return true;
  if (!value.is_string()) return false;
  const std::string_view text = trimmed_setting(value.get_ref<const std::string&>());
  return text.empty() || text == "None" || text == "null" || text == "~";
}

bool is_one_of(std::string_view key, std::string_view words) {
  return std::ranges::any_of(words_of(words), [key](std::string_view word) { return key == word; });
}

bool begins_with_one_of(std::string_view key, std::string_view words) {
  return std::ranges::any_of(words_of(words),
                             [key](std::string_view word) { return key.starts_with(word); });
}

std::string Setting::shown() const {
  return value.is_string() ? shortened(value.get_ref<const std::string&>()) : stepsim::shown(value);
}

void Settings::set(Setting setting) {
  const auto found = by_key_.find(setting.key);
  if (found != by_key_.end()) {
    found->second = std::move(setting);
    return;
  }
  order_.push_back(setting.key);
  std::string key = setting.key;
  by_key_.emplace(std::move(key), std::move(setting));
}

void Settings::set_if_absent(Setting setting) {
  if (!by_key_.contains(setting.key)) set(std::move(setting));
}

void Settings::rename(const std::function<std::string(const Setting&)>& rename) {
  std::vector<Setting> kept;
  for (const std::string& key : order_) kept.push_back(std::move(by_key_.at(key)));
  order_.clear();
  by_key_.clear();
  for (Setting& setting : kept) {
    std::string key = rename(setting);
    if (key.empty()) continue;
    setting.key = std::move(key);
    set(std::move(setting));
  }
}

const Setting* Settings::find(std::string_view key) const {
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || is_blank_value(found->second.value)) return nullptr;
  return &found->second;
}

Setting* Settings::used(std::string_view key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  found->second.is_used = true;
  return is_blank_value(found->second.value) ? nullptr : &found->second;
}

void Settings::use(std::string_view key) {
  used(key);
}

void Settings::refuse(const Setting& setting, const std::string& accepted) {
  const std::string shown = setting.shown();
  const bool is_open = setting.value.is_string() && shown.find('$') != std::string::npos;
  problems_->push_back(
      {setting.where(),
       is_open ? fmt::format("is {}, which the file does not set: add {}=VALUE "
                             "behind the file",
                             shown, setting.name.substr(setting.name.find_first_not_of('-')))
               : fmt::format("must be {}, is {}", accepted, shown)});
}

std::optional<std::int64_t> Settings::integer(std::string_view key) {
  Setting* const setting = used(key);
  if (setting == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = integer_of(setting->value);
  if (!value) {
    refuse(*setting, "a whole number");
    setting->value = nullptr;  // reported once
  }
  return value;
}

std::optional<double> Settings::number(std::string_view key) {
  Setting* const setting = used(key);
  if (setting == nullptr) return std::nullopt;
  const std::optional<double> value = double_of(setting->value);
  if (!value) {
    refuse(*setting, "a number");
    setting->value = nullptr;
  }
  return value;
}

std::optional<bool> Settings::truth(std::string_view key) {
  Setting* const setting = used(key);
  if (setting == nullptr) return std::nullopt;
  const std::optional<bool> value = truth_of(setting->value);
  if (!value) {
    refuse(*setting, "true or false");
    setting->value = nullptr;
  }
  return value;
}

std::optional<std::string> Settings::text(std::string_view key) {
  Setting* const setting = used(key);
  if (setting == nullptr) return std::nullopt;
  if (setting->value.is_array()) {
    std::string joined;
    for (const Json& element : setting->value) {
      joined += (joined.empty() ? "" : " ") + plain(element);
    }
    return joined;
  }
  return plain(setting->value);
}

std::optional<std::vector<std::string>> Settings::words(std::string_view key) {
  Setting* const setting = used(key);
  if (setting == nullptr) return std::nullopt;
  std::vector<std::string> words;
  if (setting->value.is_array()) {
    for (const Json& element : setting->value) words.push_back(plain(element));
    return words;
  }
  // Also the list that Python prints: ['core_attn', 'mlp'].
  std::string text = plain(setting->value);
  std::ranges::replace_if(
      text, [](char c) { return c == ',' || c == '[' || c == ']' || c == '\'' || c == '"'; }, ' ');
  for (const std::string_view word : words_of(text)) words.emplace_back(word);
  return words;
}

void Settings::fail(std::string_view key, const std::string& message) {
  const auto found = by_key_.find(key);
  problems_->push_back(
      {found == by_key_.end() ? std::string(key) : found->second.where(), message});
}

std::vector<const Setting*> Settings::all() const {
  std::vector<const Setting*> settings;
  for (const std::string& key : order_) settings.push_back(&by_key_.find(key)->second);
  return settings;
}

std::vector<const Setting*> Settings::unused() const {
  std::vector<const Setting*> settings = all();
  std::erase_if(settings, [](const Setting* setting) { return setting->is_used; });
  return settings;
}

std::string SettingsBuilder::key_of(std::string_view name) const {
  std::string key;
  for (const std::string& group : groups_) {
    if (!group.empty()) key += group + ".";
  }
  return key.append(name);
}

bool SettingsBuilder::open(std::string_view group) {
  if (!problem_.empty()) return false;
  if (groups_.size() >= kMostSettingDepth) {
    problem_ = fmt::format("is nested more than {} deep", kMostSettingDepth);
    return false;
  }
  groups_.emplace_back(group.substr(0, kMostKey));
  return true;
}

void SettingsBuilder::close() {
  if (!groups_.empty()) groups_.pop_back();
}

bool SettingsBuilder::add(std::string_view name, Json value, std::size_t line, bool if_absent) {
  if (!problem_.empty()) return false;
  std::string key = key_of(name);
  bytes_ += 2 * key.size();
  if (settings_->size() >= kMostSettings || bytes_ > kMostKeyBytes) {
    problem_ = fmt::format("has more than {} settings", kMostSettings);
    return false;
  }
  if (key.size() > kMostKey) {
    problem_ = fmt::format("has a key of more than {} characters", kMostKey);
    return false;
  }
  Setting setting;
  setting.name = key;
  setting.key = std::move(key);
  setting.value = std::move(value);
  setting.place = line == 0 ? file_ : fmt::format("{}:{}", file_, line);
  if (if_absent) {
    settings_->set_if_absent(std::move(setting));
  } else {
    settings_->set(std::move(setting));
  }
  return true;
}

}  // namespace stepsim
