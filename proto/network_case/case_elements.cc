#include "proto/network_case/case_elements.h"

#include <istream>
#include <utility>

#include "proto/network_case/case_text.h"

namespace stepsim {
namespace {

using Json = nlohmann::json;

bool is_list_name(const std::string& key) {
  return key == "links" || key == "flows" || key == "expect";
}

// ElementReader handles the events of nlohmann::json's parser. Depth 1 is inside the root object,
// depth 2 inside a list.
class ElementReader {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  ElementReader(const std::string& path, const CaseVisitor& visitor)
      : path_(path), visitor_(visitor) {}

  std::vector<Problem> take_problems() { return std::move(problems_); }

  bool null() { return value(nullptr); }
  bool boolean(bool is_true) { return value(is_true); }
  bool number_integer(number_integer_t number) { return value(number); }
  bool number_unsigned(number_unsigned_t number) { return value(number); }
  bool number_float(number_float_t number, const string_t&) { return value(number); }
  bool string(string_t& text) { return value(std::move(text)); }
  bool binary(binary_t&) { return true; }

  bool key(string_t& name) {
    (open_.empty() ? root_key_ : key_) = std::move(name);
    return true;
  }

  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
    const std::string message = error.what();
    const std::size_t end_of_code = message.find("] ");
    problems_.push_back(
        {path_,
         "is not JSON: " + message.substr(end_of_code == std::string::npos ? 0 : end_of_code + 2)});
    return false;
  }

 private:
  bool open(Json&& container) {
    if (!open_.empty()) {
      open_.push_back(&insert(std::move(container)));
    } else if (depth_ == 0 && !container.is_object()) {
      problems_.push_back({path_, "must be a JSON object, is a list"});
      return false;
    } else if (depth_ == 1) {
      is_in_list_ = false;
      if (is_list_name(root_key_)) {
        is_in_list_ = container.is_array() && visitor_.wants(root_key_);
        if (!container.is_array()) problems_.push_back({root_key_, "must be a list"});
      }
      index_ = 0;
    } else if (depth_ == 2 && is_in_list_) {
      element_ = std::move(container);
      open_.push_back(&element_);
    }
    ++depth_;
    return true;
  }

  bool close() {
    --depth_;
    if (open_.empty()) return true;
    open_.pop_back();
    if (open_.empty()) visitor_.element(root_key_, index_++, element_);
    return true;
  }

  template <typename Value>
  bool value(Value&& plain) {
    if (!open_.empty()) {
      insert(Json(std::forward<Value>(plain)));
    } else if (depth_ == 0) {
      problems_.push_back({path_, "must be a JSON object"});
      return false;
    } else if (depth_ == 1 && is_list_name(root_key_)) {
      problems_.push_back({root_key_, "must be a list"});
    } else if (depth_ == 1) {
      visitor_.value(root_key_, Json(std::forward<Value>(plain)));
    } else if (depth_ == 2 && is_in_list_) {
      visitor_.element(root_key_, index_++, Json(std::forward<Value>(plain)));
    }
    return true;
  }

  Json& insert(Json&& value) {
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }

  const std::string& path_;
  const CaseVisitor& visitor_;
  std::vector<Problem> problems_;
  int depth_ = 0;
  std::string root_key_;
  bool is_in_list_ = false;  // in the list whose elements are wanted
  std::size_t index_ = 0;    // in that list
  Json element_;
  std::vector<Json*> open_;  // the element and its open parts
  std::string key_;
};

}  // namespace

std::vector<Problem> read_case_elements(const std::string& path, const CaseVisitor& visitor) {
  CaseText text(path);
  if (!text.problem().empty()) return {{path, text.problem()}};
  ElementReader reader(path, visitor);
  std::istream stream(&text);
  Json::sax_parse(stream, &reader);
  std::vector<Problem> problems = reader.take_problems();
  // If the text breaks off, the parser's complaint is not the cause.
  if (!text.problem().empty()) return {{path, text.problem()}};
  return problems;
}

}  // namespace stepsim
