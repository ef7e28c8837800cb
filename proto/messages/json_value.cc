#include "proto/messages/json_value.h"

#include <algorithm>
#include <istream>
#include <utility>

#include "sim/base/field_text.h"
#include "sim/base/shown_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostDigits = 1000;
constexpr std::size_t kMostValues = 20'000'000;
constexpr int kOutOfRange = 406;  // nlohmann's code of a number that overflows

// Removes the code from "[json.exception.parse_error.101] parse error at line 3, column 5: what".
// Shortens what was read, and replaces bytes that a terminal can't show.
std::string plain_message(std::string message) {
  constexpr std::size_t kMostRead = 60;
  message.erase(0, std::min(message.find("] ") + 2, message.size()));
  if (message.find("ill-formed UTF-8") != std::string::npos) {
    std::ranges::replace_if(
        message, [](char letter) { return static_cast<unsigned char>(letter) >= 0x80; }, '?');
  }
  constexpr std::string_view kRead = "last read: '";
  const std::size_t begin = message.find(kRead) + kRead.size();
  const std::size_t end = message.rfind('\'');
  if (message.find(kRead) == std::string::npos || end < begin + kMostRead) return message;
  return message.replace(begin, end - begin,
                         shortened(message.substr(begin, end - begin), kMostRead));
}

// LimitedEvents passes on events of nlohmann's parser within the limits.
class LimitedEvents {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  LimitedEvents(const JsonText& text, JsonEvents& events) : text_(text), events_(events) {}

  std::string take_problem() { return std::move(problem_); }

  bool null() { return events_.value(nullptr); }
  bool boolean(bool is_true) { return events_.value(is_true); }
  bool number_integer(number_integer_t number) { return events_.value(number); }
  bool number_unsigned(number_unsigned_t number) { return events_.value(number); }
  bool number_float(number_float_t number, const string_t& digits) {
    if (digits.size() <= kMostDigits) return events_.value(number);
    return refuse("a number must have at most 1000 characters, this one has " +
                  std::to_string(digits.size()));
  }
  bool string(string_t& text) { return events_.value(std::move(text)); }
  bool binary(binary_t&) { return true; }
  bool key(string_t& name) { return events_.key(name); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool parse_error(std::size_t, const std::string& token, const Json::exception& error) {
    if (error.id == kOutOfRange) {
      return refuse("a number must be at most 1.7e308, is " + shortened(token));
    }
    problem_ = plain_message(error.what());
    return false;
  }

 private:
  bool open(Json container) {
    if (++depth_ <= kMostNesting) return events_.open(std::move(container));
    return refuse("lists and objects must be nested at most 100 deep");
  }

  bool close() {
    --depth_;
    return events_.close();
  }

  bool refuse(const std::string& why) {
    problem_ = "parse error at " + text_.place() + ": " + why;
    return false;
  }

  const JsonText& text_;
  JsonEvents& events_;
  int depth_ = 0;
  std::string problem_;
};

// A text in memory is one block.
class TextInMemory final : public JsonText {
 public:
  explicit TextInMemory(std::string_view text)
      : rest_(const_cast<char*>(text.data()), text.size()) {}  // a stream only reads it

 private:
  std::span<char> next_block() override { return std::exchange(rest_, {}); }

  std::span<char> rest_;
};

class WholeTree final : public JsonEvents {
 public:
  bool open(Json container) override {
    tree_.open(std::move(container));
    return count();
  }
  bool close() override {
    tree_.close();
    return true;
  }
  bool key(std::string& name) override {
    tree_.key(name);
    return true;
  }
  bool value(Json plain) override {
    tree_.value(std::move(plain));
    return count();
  }

  bool is_too_large() const { return count_ > kMostValues; }
  const std::optional<std::string>& repeated_key() const { return tree_.repeated_key(); }
  Json take() { return std::move(tree_.root()); }

 private:
  bool count() { return ++count_ <= kMostValues && !tree_.repeated_key(); }

  JsonTree tree_;
  std::size_t count_ = 0;
};

}  // namespace

JsonOrProblem parse_json(std::string_view text) {
  TextInMemory stream(text);
  WholeTree tree;
  std::string problem = read_json(stream, tree);
  if (tree.is_too_large()) problem = "must have at most 20 million values";
  if (const auto& key = tree.repeated_key(); key && problem.empty()) {
    problem = "parse error at " + stream.place() + ": " + given_twice(*key);
  }
  if (!problem.empty()) return {.value = std::nullopt, .problem = std::move(problem)};
  return {.value = tree.take(), .problem = {}};
}

std::string given_twice(std::string_view key) {
  return "the key \"" + shortened(key) + "\" is given twice in one object";
}

std::string json_text(const Json& value) {
  return json_shown(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string shown(const Json& value) {
  return shortened(json_text(value));
}

std::string read_json(JsonText& text, JsonEvents& events) {
  LimitedEvents limited(text, events);
  std::istream stream(&text);
  Json::sax_parse(stream, &limited);
  return limited.take_problem();
}

// ---- JsonText ----

JsonText::int_type JsonText::underflow() {
  for (const char* at = eback(); at != egptr(); ++at) {
    columns_ = *at == '\n' ? 0 : columns_ + 1;
    if (*at == '\n') ++lines_;
  }
  const std::span<char> block = next_block();
  setg(block.data(), block.data(), block.data() + block.size());
  return block.empty() ? traits_type::eof() : traits_type::to_int_type(block.front());
}

// The character read last counts as part of its line, even if it is the line's end.
std::string JsonText::place() const {
  std::size_t line = lines_;
  std::size_t column = columns_;
  for (const char* at = eback(); at != gptr(); ++at) {
    const bool ends_line = *at == '\n' && at + 1 != gptr();
    column = ends_line ? 0 : column + 1;
    if (ends_line) ++line;
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// ---- JsonTree ----

void JsonTree::open(Json container) {
  open_.push_back({&insert(std::move(container))});
}

void JsonTree::close() {
  open_.pop_back();
}

Json& JsonTree::insert(Json&& value) {
  if (open_.empty()) return root_ = std::move(value);
  Open& parent = open_.back();
  if (parent.container->is_object()) return insert_key(parent, std::move(value));
  parent.container->push_back(std::move(value));
  return parent.container->back();
}

Json& JsonTree::repeat(Json& value) {
  if (!repeated_key_) repeated_key_ = key_;
  return value;
}

Json& JsonTree::insert_key(Open& object, Json&& value) {
  constexpr std::size_t kSmall = 16;
  auto& members = object.container->get_ref<Json::object_t&>();
  if (members.size() < kSmall) {
    if (members.count(key_) != 0) return repeat(members[key_] = std::move(value));
    return members[key_] = std::move(value);
  }
  if (object.places.empty()) {
    for (const auto& [key, member] : members) object.places.emplace(key, object.places.size());
  }
  const auto [place, is_new] = object.places.emplace(key_, members.size());
  // A map of nlohmann searches all its keys before it adds one; the vector below it does not.
  Json::object_t::Container& list = members;
  if (!is_new) return repeat(list[place->second].second = std::move(value));
  return list.emplace_back(std::move(key_), std::move(value)).second;
}

}  // namespace stepsim
