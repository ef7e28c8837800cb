// Json is the type of JSON values in the whole program, and this is the only place that parses and
// prints them: nlohmann's parser is compiled once.
//
//   const JsonOrProblem read = parse_json(text);
//   if (!read.value) problems.add(name, read.problem);   // "parse error at line 3, column 5: ..."
//
// Nothing here throws because of a text. Lists and objects may be nested 100 deep, so that nothing
// that walks through a value can exhaust the stack. Numbers must be in the range of a double and
// have at most 1,000 characters. A key that an object has twice is a problem: which of its values
// is meant?

#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <streambuf>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stepsim {

// Fields are in the order of the file. Start from Json::object() or Json::array(): a null value
// that becomes one by [] or push_back() crashes in its destructor if there is no memory for that.
using Json = nlohmann::ordered_json;

inline constexpr int kMostNesting = 100;  // of lists and objects, and of messages in a textproto

struct JsonOrProblem {
  std::optional<Json> value;
  std::string problem;
};

// A text may have 20 million values, which is a byte matrix of 4,096 members.
JsonOrProblem parse_json(std::string_view text);

// Returns what to say of a key that is given twice.
std::string given_twice(std::string_view key);

// Returns the value in one line. Bytes that are not UTF-8 are replaced, and hidden characters
// escaped (sim/base/shown_text.h).
std::string json_text(const Json& value);

// Returns a value for a message: at most 60 characters and an ellipsis.
std::string shown(const Json& value);

// ---- streams ----

// JsonText is a text that comes block by block and knows its place.
class JsonText : public std::streambuf {
 public:
  std::string place() const;  // of the character read last: "line 3, column 5"

 protected:
  // Returns the next characters, which stay valid until the next call; none at the end.
  virtual std::span<char> next_block() = 0;

 private:
  int_type underflow() final;

  std::size_t lines_ = 1;    // up to the block
  std::size_t columns_ = 0;  // of the last of these lines
};

// JsonEvents gets the parts of a text in order. Each function returns false to stop the reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool open(Json container) = 0;  // empty: {} or []
  virtual bool close() = 0;
  virtual bool key(std::string& name) = 0;
  virtual bool value(Json plain) = 0;
};

// Reads one JSON value. Returns the problem of the text; empty if it was read to its end or
// `events` stopped it.
std::string read_json(JsonText& text, JsonEvents& events);

// JsonTree builds one value from events.
class JsonTree {
 public:
  void open(Json container);
  void close();
  void key(std::string& name) { key_ = std::move(name); }
  void value(Json plain) { insert(std::move(plain)); }

  bool is_open() const { return !open_.empty(); }
  // The first key that its object had already; nullopt: none.
  const std::optional<std::string>& repeated_key() const { return repeated_key_; }
  Json& root() { return root_; }

 private:
  // Places is an index of the keys of a large object. Small ones are searched.
  using Places = std::unordered_map<std::string, std::size_t>;
  struct Open {
    Json* container;
    Places places{};
  };

  Json& insert(Json&& value);
  Json& insert_key(Open& object, Json&& value);
  Json& repeat(Json& value);

  Json root_;
  std::vector<Open> open_;  // from the root to the innermost
  std::string key_;
  std::optional<std::string> repeated_key_;
};

}  // namespace stepsim
