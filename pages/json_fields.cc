#include "pages/json_fields.h"

#include <fmt/format.h>

namespace stepsim {
namespace {

const Json& no_members() {
  static const Json kNone = Json::object();
  return kNone;
}

}  // namespace

JsonFields::JsonFields(const Json& object, std::string path, std::vector<Problem>& problems)
    : object_(&object), path_(std::move(path)), problems_(&problems) {
  if (object.is_object()) return;
  problems.push_back({path_, fmt::format("must be an object, is {}", shown(object))});
  object_ = &no_members();
}

std::string JsonFields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const Json* JsonFields::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::refuse(std::string_view key, std::string_view accepted) const {
  const Json* const value = find(key);
  problems_->push_back(
      {path_of(key), value == nullptr ? fmt::format("must be {}, is not given", accepted)
                                      : fmt::format("must be {}, is {}", accepted, shown(*value))});
}

bool JsonFields::has(std::string_view key) const {
  return find(key) != nullptr;
}

double JsonFields::number(std::string_view key) const {
  const Json* const value = find(key);
  if (value != nullptr && value->is_number()) return value->get<double>();
  refuse(key, "a number");
  return 0;
}

std::optional<double> JsonFields::number_if_given(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return number(key);
}

std::string JsonFields::text(std::string_view key) const {
  const Json* const value = find(key);
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  refuse(key, "a text");
  return "";
}

bool JsonFields::truth(std::string_view key) const {
  const Json* const value = find(key);
  if (value != nullptr && value->is_boolean()) return value->get<bool>();
  refuse(key, "true or false");
  return false;
}

JsonFields JsonFields::object(std::string_view key) const {
  const Json* const value = find(key);
  if (value != nullptr && value->is_object()) return {*value, path_of(key), *problems_};
  refuse(key, "an object");
  return {no_members(), path_of(key), *problems_};
}

std::vector<JsonFields> JsonFields::objects(std::string_view key) const {
  const Json* const value = find(key);
  std::vector<JsonFields> objects;
  if (value == nullptr || !value->is_array()) {
    refuse(key, "a list");
    return objects;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    objects.emplace_back((*value)[i], fmt::format("{}[{}]", path_of(key), i), *problems_);
  }
  return objects;
}

std::vector<double> JsonFields::numbers(std::string_view key) const {
  const Json* const value = find(key);
  std::vector<double> numbers;
  if (value != nullptr && value->is_array()) {
    for (const Json& one : *value) {
      if (one.is_number()) numbers.push_back(one.get<double>());
    }
  }
  if (numbers.empty() || numbers.size() != value->size()) {
    refuse(key, "a list of numbers");
    return {0};
  }
  return numbers;
}

std::vector<std::pair<std::string, double>> JsonFields::all_numbers() const {
  std::vector<std::pair<std::string, double>> all;
  for (const auto& [key, value] : object_->items()) {
    if (value.is_number()) all.emplace_back(key, value.get<double>());
  }
  return all;
}

}  // namespace stepsim
