// What a command gives back is declared once, in a table beside its struct: name, unit, meaning and
// when it is there. JSON, `stepsim help results`, the site's page and the tests that hold them
// together are loops over the tables.
//
//   const ResultTable<StepEnergy>& energy_results() {
//     static const ResultTable<StepEnergy> kTable = [] {
//       ResultTable<StepEnergy> table;
//       table.add("joules_per_step", &StepEnergy::joules, {"energy of one step", "J"});
//       return table;
//     }();
//     return kTable;
//   }
//   table.object("energy", energy_results(), &StepReport::energy, {"of the chips alone", "J, W"});
//
// A getter is a member or a function of the struct. What it returns decides how it is written:
// Duration as exact seconds with 12 fractional digits, Bytes as a whole number, a double as the
// shortest decimal that reads back as the same, RankId as its number, a vector as a list, and a
// vector of pairs of a name and a value as an object whose members the run names. An empty
// std::optional leaves the member out; OrNull writes null. A list() that has a `when` is left out
// while it is empty.

#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

struct ResultDoc {
  std::string_view help;       // what it is
  std::string_view unit = {};  // "s", "bytes", "0 to 1"; a JSON name ends in its unit where it can
  std::string_view when = {};  // when it is there; empty: always
};

// A value that is JSON already.
struct RawJson {
  std::string text;
};

// null where there is no value.
template <class V>
struct OrNull {
  std::optional<V> value;
};
template <class V>
OrNull(std::optional<V>) -> OrNull<V>;

// Returns the nearest picosecond.
Duration nearest_time(double seconds);

// A text, left out where it is empty.
inline std::optional<std::string_view> given(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Members named by the run, such as the axes of a plan.
template <class V>
using ByName = std::vector<std::pair<std::string, V>>;

class AnyResultTable;

enum class ResultShape {
  kValue,   // a number, a text, true or false, or a list of these
  kByName,  // an object whose members the run names
  kFree,    // JSON that other tables or files describe
  kObject,  // one of `fields`
  kList,    // several of them
};

struct ResultField {
  std::string_view name;
  ResultDoc doc;
  ResultShape shape = ResultShape::kValue;
  const AnyResultTable* fields = nullptr;
};

class AnyResultTable {
 public:
  const std::vector<ResultField>& fields() const { return fields_; }
  // Whether a member is an object or a list of objects.
  bool has_nested() const;

 protected:
  void declare(const ResultField& field) { fields_.push_back(field); }

 private:
  std::vector<ResultField> fields_;
};

// A member of a result, wherever it is nested: "memory.by_stage[].rank".
struct ResultPath {
  std::string path;
  const ResultField* field;
};
std::vector<ResultPath> result_paths(const AnyResultTable& table);

// A member and its JSON.
using JsonMember = std::pair<std::string_view, std::string>;

// Returns an object: a line each member, or one line. `depth` counts the objects and lists around.
std::string json_object(const std::vector<JsonMember>& members, bool in_lines, int depth);
// Returns a list of objects: a line each down to two objects and lists around, one line below.
std::string json_objects(const std::vector<std::string>& objects, int depth);

std::string json_of(bool value);
std::string json_of(double value);
std::string json_of(Duration value);
std::string json_of(Bytes value);
std::string json_of(Bandwidth value);  // in bytes/s
std::string json_of(std::string_view value);
inline std::string json_of(const std::string& value) {
  return json_of(std::string_view(value));
}
inline std::string json_of(const char* value) {
  return json_of(std::string_view(value));
}
inline std::string json_of(const RawJson& value) {
  return value.text;
}
inline std::string json_of(RankId value) {
  return std::to_string(value.index());
}

template <class V>
requires(std::integral<V> && !std::same_as<V, bool> && !std::same_as<V, char>) std::string
    json_of(V value) {
  return std::to_string(value);
}

template <class V>
std::string json_of(const std::vector<V>& values);
template <class V>
std::string json_of(const ByName<V>& values);

template <class V>
std::string json_of(const OrNull<V>& value) {
  return value.value ? json_of(*value.value) : "null";
}

std::string json_of_all(const std::vector<std::string>& values);  // a list, in one line

template <class V>
std::string json_of(const std::vector<V>& values) {
  std::vector<std::string> texts;
  for (const auto& value : values) texts.push_back(json_of(static_cast<const V&>(value)));
  return json_of_all(texts);
}

template <class V>
std::string json_of(const ByName<V>& values) {
  std::vector<JsonMember> members;
  for (const auto& [name, value] : values) members.emplace_back(name, json_of(value));
  return json_object(members, false, 0);
}

template <class T>
class ResultTable : public AnyResultTable {
 public:
  // Adds a value.
  template <class Get>
  void add(std::string_view name, Get get, ResultDoc doc) {
    using Value = std::invoke_result_t<Get, const T&>;
    if constexpr (std::convertible_to<Get, Value (*)(const T&)>) {
      add_value<Value>(name, static_cast<Value (*)(const T&)>(get), doc);
    } else {
      add_value<Value>(name, get, doc);
    }
  }

  // Adds an object. `get` returns a U, or a pointer, std::optional or OrNull of it.
  template <class U, class Get>
  void object(std::string_view name, const ResultTable<U>& table, Get get, ResultDoc doc) {
    add_writer({name, doc, ResultShape::kObject, &table},
               [get, &table](const T& result, int depth) -> std::optional<std::string> {
                 auto&& value = std::invoke(get, result);
                 using Value = std::remove_cvref_t<decltype(value)>;
                 if constexpr (std::same_as<Value, U>) {
                   return table.json(value, depth + 1);
                 } else if constexpr (std::same_as<Value, OrNull<U>>) {
                   return value.value ? table.json(*value.value, depth + 1) : "null";
                 } else if constexpr (std::same_as<Value, OrNull<const U*>>) {
                   return value.value ? table.json(**value.value, depth + 1) : "null";
                 } else {
                   if (!value) return std::nullopt;
                   return table.json(*value, depth + 1);
                 }
               });
  }

  // Adds a list of objects. `get` returns a range of U, or a std::optional of one.
  template <class U, class Get>
  void list(std::string_view name, const ResultTable<U>& table, Get get, ResultDoc doc) {
    const bool needs_any = !doc.when.empty();
    add_writer({name, doc, ResultShape::kList, &table},
               [get, &table, needs_any](const T& result, int depth) -> std::optional<std::string> {
                 std::vector<std::string> objects;
                 const auto write = [&](const auto& values) {
                   for (const U& value : values) objects.push_back(table.json(value, depth + 2));
                 };
                 auto&& values = std::invoke(get, result);
                 if constexpr (requires { values.has_value(); }) {
                   if (!values) return std::nullopt;
                   write(*values);
                 } else {
                   write(values);
                   if (needs_any && objects.empty()) return std::nullopt;
                 }
                 return json_objects(objects, depth + 1);
               });
  }

  // Adds all members of another struct's table. `get` returns a U, or a pointer or std::optional of
  // it: without one there are no such members.
  template <class U, class Get>
  void include(const ResultTable<U>& table, Get get) {
    for (std::size_t i = 0; i < table.fields().size(); ++i) {
      add_writer(table.fields()[i],
                 [get, &table, i](const T& result, int depth) -> std::optional<std::string> {
                   auto&& value = std::invoke(get, result);
                   if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, U>) {
                     return table.member(i, value, depth);
                   } else {
                     return value ? table.member(i, *value, depth) : std::nullopt;
                   }
                 });
    }
  }

  // Returns the JSON of a result. Objects that have further objects within them have a line each
  // member, down to one object around them.
  std::string json(const T& result, int depth = 0) const {
    std::vector<JsonMember> members;
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      if (auto text = writers_[i](result, depth)) {
        members.emplace_back(fields()[i].name, std::move(*text));
      }
    }
    return json_object(members, depth == 0 || (depth == 1 && has_nested()), depth);
  }

  std::optional<std::string> member(std::size_t i, const T& result, int depth) const {
    return writers_[i](result, depth);
  }

 private:
  // Compiled once for all functions without captures that return the same.
  template <class Value, class Get>
  void add_value(std::string_view name, Get get, ResultDoc doc) {
    add_writer({name, doc, shape_of<std::remove_cvref_t<Value>>()},
               [get](const T& result, int) { return text_of(std::invoke(get, result)); });
  }

  using Writer = std::function<std::optional<std::string>(const T&, int)>;

  // What lies in an std::optional or OrNull.
  template <class Value>
  struct Bare {
    using type = Value;
  };
  template <class Value>
  struct Bare<std::optional<Value>> : Bare<Value> {};
  template <class Value>
  struct Bare<OrNull<Value>> : Bare<Value> {};

  template <class Value>
  static constexpr ResultShape shape_of() {
    using Inner = typename Bare<Value>::type;
    if constexpr (std::same_as<Inner, RawJson>) {
      return ResultShape::kFree;
    } else if constexpr (requires(Inner inner) { inner.front().second; }) {
      return ResultShape::kByName;
    } else {
      return ResultShape::kValue;
    }
  }

  template <class Value>
  static std::optional<std::string> text_of(const Value& value) {
    if constexpr (requires { value.has_value(); }) {
      return value ? std::optional(json_of(*value)) : std::nullopt;
    } else {
      return json_of(value);
    }
  }

  void add_writer(const ResultField& field, Writer writer) {
    declare(field);
    writers_.push_back(std::move(writer));
  }

  std::vector<Writer> writers_;
};

}  // namespace stepsim
