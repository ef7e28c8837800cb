#include "proto/hugging_face/families/hugging_face_config.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

// Returns whether a value says nothing: null, false, 0, or a list of one word for all layers.
bool is_nothing(const Json& value) {
  if (!value.is_array()) return value.is_null() || value == false || value == 0;
  return value.empty() ||
         (value.front().is_string() &&
          std::ranges::all_of(value, [&](const Json& word) { return word == value.front(); }));
}

}  // namespace

HuggingFaceConfig HuggingFaceConfig::listing(bool has_all, ProblemList& problems) {
  static const Json kEmpty = Json::object();
  HuggingFaceConfig config("", kEmpty, problems);
  config.lists_ = true;
  config.all_ = has_all;
  return config;
}

bool HuggingFaceConfig::has(std::string_view key) {
  read_.emplace(key);
  if (lists_) return all_;
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

std::int64_t HuggingFaceConfig::whole(std::string_view key, std::string_view field,
                                      std::int64_t least, std::int64_t most) {
  if (lists_) return std::max<std::int64_t>(least, 1);
  const Json& value = at(key);
  if (value.is_number_integer() && value.get<double>() >= static_cast<double>(least) &&
      value.get<double>() <= static_cast<double>(most)) {
    return value.get<std::int64_t>();
  }
  refuse(key, field,
         "must be a whole number of " + std::to_string(least) + " to " + std::to_string(most) +
             ", is " + shown(value));
  return 0;
}

std::int64_t HuggingFaceConfig::size(std::string_view key, std::string_view field,
                                     std::int64_t most) {
  if (has(key)) return whole(key, field, 1, most);
  refuse(key, field, "must be given: a whole number of at least 1");
  return 0;
}

std::int64_t HuggingFaceConfig::size_or(std::string_view key, std::string_view field,
                                        std::int64_t absent) {
  return has(key) ? whole(key, field, 1) : absent;
}

std::int64_t HuggingFaceConfig::count_or(std::string_view key, std::string_view field,
                                         std::int64_t absent) {
  return has(key) ? whole(key, field, 0) : absent;
}

bool HuggingFaceConfig::flag_or(std::string_view key, bool absent) {
  if (!has(key)) return absent;
  if (lists_) return !absent;
  if (at(key).is_boolean()) return at(key).get<bool>();
  refuse(key, "", "must be true or false, is " + shown(at(key)));
  return absent;
}

double HuggingFaceConfig::number_or(std::string_view key, double absent) {
  if (!has(key) || lists_) return absent;
  if (at(key).is_number()) return at(key).get<double>();
  refuse(key, "", "must be a number, is " + shown(at(key)));
  return absent;
}

template <typename Value>
std::vector<Value> HuggingFaceConfig::list(std::string_view key, bool (Json::*is_value)() const,
                                           std::string_view values) {
  std::vector<Value> result;
  if (!has(key) || lists_) return result;
  const std::string must = "must be a list of " + std::string(values);
  if (!at(key).is_array()) {
    refuse(key, "", must + ", is " + shown(at(key)));
    return result;
  }
  for (const Json& value : at(key)) {
    if (!(value.*is_value)()) {
      refuse(key, "", must + "; entry " + std::to_string(result.size()) + " is " + shown(value));
      return result;
    }
    result.push_back(value.get<Value>());
  }
  return result;
}

std::vector<std::string> HuggingFaceConfig::texts(std::string_view key) {
  return list<std::string>(key, &Json::is_string, "texts");
}

std::vector<bool> HuggingFaceConfig::flags(std::string_view key) {
  return list<bool>(key, &Json::is_boolean, "true and false");
}

std::vector<std::int64_t> HuggingFaceConfig::numbers(std::string_view key) {
  return list<std::int64_t>(key, &Json::is_number_integer, "whole numbers");
}

std::string HuggingFaceConfig::text_or(std::string_view key, const std::string& absent) {
  if (!has(key) || lists_) return absent;
  if (at(key).is_string()) return at(key).get<std::string>();
  refuse(key, "", "must be a text, is " + shown(at(key)));
  return absent;
}

std::string HuggingFaceConfig::choice_or(std::string_view key,
                                         const std::vector<std::string>& choices,
                                         const std::string& absent) {
  const std::string text = text_or(key, absent);
  if (text == absent || std::ranges::count(choices, text) > 0) return text;
  refuse(key, "", "must be " + comma_separated(choices) + "; is \"" + text + "\"");
  return absent;
}

std::int64_t HuggingFaceConfig::integer_or(std::string_view key, std::int64_t absent) {
  return has(key) ? whole(key, "", -kMostOfAny) : absent;
}

std::vector<std::int64_t> HuggingFaceConfig::layers(std::string_view key, std::int64_t first,
                                                    std::int64_t last) {
  std::vector<std::int64_t> result = numbers(key);
  const auto wrong = std::ranges::find_if(
      result, [&](std::int64_t layer) { return layer < first || layer > last; });
  if (wrong != result.end() && last >= first) {
    refuse(key, "",
           "must list layers from " + std::to_string(first) + " to " + std::to_string(last) +
               "; entry " + std::to_string(wrong - result.begin()) + " is " +
               std::to_string(*wrong));
  }
  return result;
}

std::int64_t HuggingFaceConfig::uniform(std::string_view key, std::string_view field) {
  if (!has(key) || lists_ || !at(key).is_array()) return size(key, field);
  const std::vector<std::int64_t> list = numbers(key);
  const bool alike = std::ranges::adjacent_find(list, std::not_equal_to<>()) == list.end();
  if (!list.empty() && alike && list.front() >= 1 && list.front() <= kMostOfAny) {
    return list.front();
  }
  refuse(key, field,
         "must be the same whole number of 1 to " + std::to_string(kMostOfAny) +
             " for all layers, is " + shown(at(key)));
  return 0;
}

HuggingFaceConfig HuggingFaceConfig::nested(std::string_view key) {
  static const Json kEmpty = Json::object();
  if (has(key) && lists_) return listing(all_, problems_);
  const bool is_object = has(key) && at(key).is_object();
  if (!is_object) refuse(key, "", "must be given: an object in braces");
  return {name_ + ": " + std::string(key), is_object ? at(key) : kEmpty, problems_};
}

HuggingFaceConfig HuggingFaceConfig::with_first_entries(const Keys& lists, Json& object) {
  if (lists_) return listing(all_, problems_);
  object = object_;
  for (const std::string& key : lists) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array() || found->empty()) continue;
    const Json first = found->front();
    *found = first;
  }
  return {name_, object, problems_};
}

std::vector<std::string> HuggingFaceConfig::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_.items()) names.push_back(key);
  return names;
}

std::vector<HuggingFaceConfig> HuggingFaceConfig::objects(std::string_view key) {
  std::vector<HuggingFaceConfig> result;
  if (!has(key)) refuse(key, "", "must be given: a list of objects in braces");
  if (!has(key) || lists_) return result;
  const Json& list = at(key);
  if (!list.is_array() || !std::ranges::all_of(list, &Json::is_object)) {
    refuse(key, "", "must be a list of objects in braces, is " + shown(list));
    return result;
  }
  for (const Json& value : list) {
    const std::string place = ": entry " + std::to_string(result.size());
    result.push_back({name_ + ": " + std::string(key) + place, value, problems_});
  }
  return result;
}

void HuggingFaceConfig::expect(std::string_view key, const Json& value, std::string_view why) {
  if (!has(key) || lists_ || at(key) == value) return;
  refuse(key, "", "must be " + shown(value) + std::string(why) + ", is " + shown(at(key)));
}

std::int64_t HuggingFaceConfig::divide_over_heads(std::int64_t width, std::int64_t heads,
                                                  std::string_view key) {
  if (width == 0 || heads == 0) return 1;  // reported already
  if (width % heads == 0) return width / heads;
  refuse(key, "head_dim",
         "must divide the hidden size (" + std::to_string(width) +
             ") where head_dim is not given, is " + std::to_string(heads));
  return 1;
}

void HuggingFaceConfig::refuse(std::string_view key, std::string_view field, std::string message) {
  if (lists_) return;
  if (!field.empty()) problems_.mark_reported("model." + std::string(field));
  problems_.add(name_ + ": " + std::string(key), std::move(message));
}

void HuggingFaceConfig::refuse_unread(std::string_view family, const Keys& keys) {
  for (const auto& [key, value] : object_.items()) {
    if (!keys.contains(key) || read_.contains(key) || is_nothing(value)) continue;
    refuse(key, "",
           "is " + shown(value) + ", but a " + std::string(family) + " has no such thing here");
  }
}

}  // namespace stepsim
