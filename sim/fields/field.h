// A field is one value that a person can set. It is declared once, in a table beside its struct:
//
//   const FieldTable<Straggler>& straggler_fields() {
//     static const FieldTable<Straggler> kTable = [] {
//       FieldTable<Straggler> table("Straggler");
//       table.add("slowdown", &Straggler::slowdown, Limits::positive(),
//                 {.help = "Kernels take this many times longer.", .required = true});
//       return table;
//     }();
//     return kTable;
//   }
//
// The row gives the name, the limits and the documentation. The type, and so the way the value is
// written (sim/base/field_text.h), follows from the member; the default from Struct{}. Everything
// else is a loop over the table: reading files (proto/messages/read_fields.h), limits, what differs
// from the default (below), help and Markdown (sim/fields/field_help.h).
//
// A std::optional member is a field that may be left unset. A nested struct is a group() of another
// table. A vector of structs is a list(). A value with a syntax of its own needs two functions, one
// that reads and one that writes. A rule between two fields is code, not a field's limit.

#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/field_text.h"

namespace stepsim {

// FieldDoc is the documentation of a field. Every member holds plain sentences.
struct FieldDoc {
  std::string_view help;         // what it is, with its unit; the first sentence may stand alone
  std::string_view advice = {};  // when to change it; what a larger value costs and brings
  std::string_view rules = {};   // how it must agree with other fields
  std::string_view unset = {};   // optional members: the meaning of leaving it out
  bool required = false;         // must be given
  std::string_view see =
      {};  // groups: the page or topic that explains their fields, unless they are listed beneath
};

// Limits are the values that a number may have, in base units (bytes, seconds, bytes/s, FLOP/s).
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;    // low itself is not allowed
  bool below_high = false;   // high itself is not allowed
  bool zero_unsets = false;  // 0 is allowed as well and stands for "none"
  std::vector<std::pair<double, std::string_view>>
      choices{};  // the only allowed values, with their meanings

  static Limits at_least(double low) { return {.low = low}; }
  static Limits between(double low, double high) { return {.low = low, .high = high}; }
  static Limits positive() { return {.low = 0, .above_low = true}; }
  static Limits fraction() { return {.low = 0, .high = 1, .above_low = true}; }  // 0 is not allowed
  static Limits share() { return {.low = 0, .high = 1, .below_high = true}; }    // 1 is not allowed
  static Limits choice_of(std::vector<std::pair<double, std::string_view>> choices) {
    return {.choices = std::move(choices)};
  }

  // Returns the same limits, which also allow 0 for "none". A file uses 0 to take back a catalog
  // entry's value; an optional member becomes unset.
  Limits or_zero() const {
    Limits result = *this;
    result.zero_unsets = true;
    return result;
  }
};

bool within(const Limits& limits, double value);
// Returns "must be at least 1, is 0". `text` is the value as written. REQUIRES: `value` is not
// within `limits`.
std::string broken_text(const Limits& limits, double value, const std::string& text);
std::string text_of(const Limits& limits);  // "1 to 1048576"; "" if there are none

class AnyFieldTable;

// AnyField is a row of a table, independent of the type of the struct. Every `spec` points to that
// struct.
class AnyField {
 public:
  AnyField(std::string_view name, Limits limits, FieldDoc doc)
      : name_(name), limits_(std::move(limits)), doc_(doc) {}
  virtual ~AnyField() = default;

  std::string_view name() const { return name_; }  // as it is written in files
  const Limits& limits() const { return limits_; }
  const FieldDoc& doc() const { return doc_; }

  // ---- a value ----

  // Sets the value from `text`. Returns every problem found; the value changes only if there is
  // none.
  virtual std::vector<std::string> read(std::string_view text, void* spec) const = 0;
  virtual std::optional<std::string> write(const void* spec) const = 0;  // nullopt: unset
  virtual std::optional<double> number(const void* spec) const = 0;      // nullopt: not a number
  virtual void clear(
      void* spec) const = 0;  // makes it 0 or unset, once its problem has been reported
  virtual std::string accepts() const = 0;  // "a whole number"
  virtual bool is_unset_by_zero() const {
    return false;
  }  // 0 means "unset", so 0 cannot be a value

  // ---- a group or a list: fields() describes each element ----

  virtual const AnyFieldTable* fields() const { return nullptr; }
  virtual bool is_list() const { return false; }
  virtual std::size_t count(const void*) const { return 0; }  // number of elements that exist
  virtual const void* element(const void*, std::size_t) const { return nullptr; }
  virtual void* add_element(void*) const {
    return nullptr;
  }  // for a group, returns its only element

 private:
  std::string_view name_;
  Limits limits_;
  FieldDoc doc_;
};

// FieldTheme groups fields that belong together in the documentation.
struct FieldTheme {
  std::string_view title;
  std::string_view introduction;
  std::size_t first;  // index of its first field
};

class AnyFieldTable {
 public:
  explicit AnyFieldTable(std::string_view name) : name_(name) {}
  AnyFieldTable(AnyFieldTable&&) = default;
  AnyFieldTable& operator=(AnyFieldTable&&) = default;
  virtual ~AnyFieldTable() = default;

  std::string_view name() const { return name_; }  // name of the message in files: "Plan"
  const std::vector<std::unique_ptr<const AnyField>>& fields() const { return fields_; }
  const std::vector<FieldTheme>& themes() const { return themes_; }
  const AnyField* find(std::string_view name) const;  // nullptr: there is no such field
  std::vector<std::string> names() const;
  // Returns the field's value in a default-constructed struct; nullopt if it is unset there.
  virtual std::optional<std::string> default_of(const AnyField& field) const = 0;

  // Declares that a message must have exactly one of the rows. `what` names the rows in messages:
  // "a topology".
  void one_of(std::string_view what) { one_of_ = what; }
  std::string_view one_of() const {
    return one_of_;
  }  // empty: any number of the rows may be present

  // Starts a theme: the rows added after this call belong to it.
  void theme(std::string_view title, std::string_view introduction = {});

 protected:
  void add_row(std::unique_ptr<const AnyField> field) { fields_.push_back(std::move(field)); }

 private:
  std::string_view name_;
  std::string_view one_of_;
  std::vector<std::unique_ptr<const AnyField>> fields_;
  std::vector<FieldTheme> themes_;
};

// ---- uses of a table; `spec` points to its struct ----

struct FieldValue {
  std::string path;  // "tp", "latent.q_rank", "straggler[0].rank"
  std::string text;

  friend bool operator==(const FieldValue&, const FieldValue&) = default;
};

// Returns every field that has a value, in the order of the table, as text that reads back.
std::vector<FieldValue> values_in_force(const AnyFieldTable& table, const void* spec);
// Returns the entries of `values` that `others` lacks or holds with another value.
std::vector<FieldValue> differing(std::vector<FieldValue> values,
                                  const std::vector<FieldValue>& others);
// Returns a problem for every value outside its limits. The second overload checks one field and
// returns the message.
std::vector<Problem> limit_problems(const AnyFieldTable& table, const void* spec);
std::optional<std::string> limit_problem(const AnyField& field, const void* spec);

// Returns "must be a whole number, is "x"; did you mean 8192?".
std::string refused_text(const std::string& accepts, std::string_view text,
                         const std::string& hint);

// ---- rows ----

template <class T>
struct OptionalOf {
  using Value = T;
  static constexpr bool kIsOptional = false;
};
template <class T>
struct OptionalOf<std::optional<T>> {
  using Value = T;
  static constexpr bool kIsOptional = true;
};

template <class T>
concept HasNumber = requires(const T& value) {
  { Text<T>::number(value) } -> std::convertible_to<double>;
};

// OwnMember locates a row's value in the struct. find() returns nullptr if an optional struct
// around the value is missing; make() creates that struct.
template <class Struct, class T>
struct OwnMember {
  T Struct::*member;

  const T* find(const Struct& spec) const { return &(spec.*member); }
  T& make(Struct& spec) const { return spec.*member; }
};

// Locates a member of a member, whose fields are written like those of the outer struct.
template <class Struct, class Outer, class T>
struct InnerMember {
  using Inner = typename OptionalOf<Outer>::Value;
  Outer Struct::*outer;
  T Inner::*member;

  const T* find(const Struct& spec) const {
    if constexpr (OptionalOf<Outer>::kIsOptional) {
      return spec.*outer ? &(*(spec.*outer).*member) : nullptr;
    } else {
      return &(spec.*outer.*member);
    }
  }
  T& make(Struct& spec) const {
    if constexpr (OptionalOf<Outer>::kIsOptional) {
      if (!(spec.*outer)) (spec.*outer).emplace();
      return *(spec.*outer).*member;
    } else {
      return spec.*outer.*member;
    }
  }
};

// Locates a member of one alternative of a variant. While the variant holds another one, the value
// is that of a default alternative; who sets it makes the variant hold this one.
template <class Struct, class Variant, class Alternative, class T>
struct AlternativeMember {
  Variant Struct::*variant;
  T Alternative::*member;

  const T* find(const Struct& spec) const {
    static const Alternative kDefaults{};
    const Alternative* const held = std::get_if<Alternative>(&(spec.*variant));
    const Alternative* const read = held != nullptr ? held : &kDefaults;
    return &(read->*member);
  }
  T& make(Struct& spec) const {
    Alternative* held = std::get_if<Alternative>(&(spec.*variant));
    if (held == nullptr) held = &(spec.*variant).template emplace<Alternative>();
    return held->*member;
  }
};

// Locates an entry of an array that has a field of its own.
template <class Struct, class T, std::size_t N>
struct ArrayEntry {
  std::array<T, N> Struct::*array;
  std::size_t index;

  const T* find(const Struct& spec) const { return &(spec.*array)[index]; }
  T& make(Struct& spec) const { return (spec.*array)[index]; }
};

// A row for a value whose type has a Text<T>, wherever it is: what each type needs is compiled
// once, whatever has such members.
template <class T>
class ValueField : public AnyField {
  using Value = typename OptionalOf<T>::Value;

 public:
  using AnyField::AnyField;

  std::vector<std::string> read(std::string_view text, void* spec) const override {
    std::optional<Value> value = Text<Value>::read(text);
    if (!value) return {refused_text(accepts(), text, Text<Value>::hint(text))};
    T& target = make(spec);
    if constexpr (OptionalOf<T>::kIsOptional && HasNumber<Value>) {
      if (is_unset_by_zero() && Text<Value>::number(*value) == 0) {
        target.reset();
        return {};
      }
    }
    target = std::move(*value);
    return {};
  }
  std::optional<std::string> write(const void* spec) const override {
    const Value* value = value_in(spec);
    if (value == nullptr) return std::nullopt;
    return Text<Value>::write(*value);
  }
  std::optional<double> number(const void* spec) const override {
    if constexpr (HasNumber<Value>) {
      const Value* value = value_in(spec);
      if (value != nullptr) return Text<Value>::number(*value);
    }
    return std::nullopt;
  }
  void clear(void* spec) const override { make(spec) = T{}; }
  std::string accepts() const override { return Text<Value>::accepts(); }
  bool is_unset_by_zero() const override {
    return OptionalOf<T>::kIsOptional && limits().zero_unsets;
  }

 private:
  virtual const T* find(const void* spec) const = 0;  // nullptr: a struct around it is missing
  virtual T& make(void* spec) const = 0;              // creates that struct

  const Value* value_in(const void* spec) const {
    const T* member = find(spec);
    if constexpr (OptionalOf<T>::kIsOptional) {
      return member != nullptr && *member ? &**member : nullptr;
    } else {
      return member;
    }
  }
};

template <class Struct, class T, class Place = OwnMember<Struct, T>>
class MemberField : public ValueField<T> {
 public:
  MemberField(std::string_view name, Place place, Limits limits, FieldDoc doc)
      : ValueField<T>(name, std::move(limits), doc), place_(place) {}

 private:
  const T* find(const void* spec) const override {
    return place_.find(*static_cast<const Struct*>(spec));
  }
  T& make(void* spec) const override { return place_.make(*static_cast<Struct*>(spec)); }

  Place place_;
};

// Functions that read and write a value with a syntax of its own, or one spread over several
// members.
template <class Struct>
struct FieldSyntax {
  std::vector<std::string> (*read)(std::string_view text, Struct& spec);  // returns the problems
  std::optional<std::string> (*write)(const Struct& spec);                // nullopt: unset
  std::string (*accepts)();  // for example "axes such as ..."
};

template <class Struct>
class SyntaxField : public AnyField {
 public:
  SyntaxField(std::string_view name, FieldSyntax<Struct> syntax, FieldDoc doc)
      : AnyField(name, {}, doc), syntax_(syntax) {}

  std::vector<std::string> read(std::string_view text, void* spec) const override {
    return syntax_.read(text, *static_cast<Struct*>(spec));
  }
  std::optional<std::string> write(const void* spec) const override {
    return syntax_.write(*static_cast<const Struct*>(spec));
  }
  std::optional<double> number(const void*) const override { return std::nullopt; }
  void clear(void*) const override {}
  std::string accepts() const override { return syntax_.accepts(); }

 private:
  FieldSyntax<Struct> syntax_;
};

// A row that holds fields of its own.
class OuterField : public AnyField {
 public:
  OuterField(std::string_view name, const AnyFieldTable& fields, FieldDoc doc)
      : AnyField(name, {}, doc), fields_(&fields) {}

  std::vector<std::string> read(std::string_view text, void* spec) const override;
  std::optional<std::string> write(const void*) const override { return std::nullopt; }
  std::optional<double> number(const void*) const override { return std::nullopt; }
  void clear(void*) const override {}
  std::string accepts() const override;
  const AnyFieldTable* fields() const override { return fields_; }

 private:
  const AnyFieldTable* fields_;
};

// A row for a nested struct or an optional one. The optional one is created when a file has the
// group.
template <class Struct, class T>
class GroupField : public OuterField {
 public:
  GroupField(std::string_view name, T Struct::*member, const AnyFieldTable& fields, FieldDoc doc)
      : OuterField(name, fields, doc), member_(member) {}

  std::size_t count(const void* spec) const override { return element(spec, 0) ? 1 : 0; }
  const void* element(const void* spec, std::size_t) const override {
    const T& member = static_cast<const Struct*>(spec)->*member_;
    if constexpr (OptionalOf<T>::kIsOptional) {
      return member ? &*member : nullptr;
    } else {
      return &member;
    }
  }
  void* add_element(void* spec) const override {
    T& member = static_cast<Struct*>(spec)->*member_;
    if constexpr (OptionalOf<T>::kIsOptional) {
      return member ? &*member : &member.emplace();
    } else {
      return &member;
    }
  }

 private:
  T Struct::*member_;
};

// A row for one alternative of a variant. The variant takes that alternative when a file has the
// group. `Get` is a function object that returns the variant of a struct.
template <class Struct, class Alternative, class Get>
class AlternativeField : public OuterField {
 public:
  AlternativeField(std::string_view name, Get get, const AnyFieldTable& fields, FieldDoc doc)
      : OuterField(name, fields, doc), get_(get) {}

  std::size_t count(const void* spec) const override { return element(spec, 0) ? 1 : 0; }
  const void* element(const void* spec, std::size_t) const override {
    return std::get_if<Alternative>(&get_(*static_cast<const Struct*>(spec)));
  }
  void* add_element(void* spec) const override {
    return &get_(*static_cast<Struct*>(spec)).template emplace<Alternative>();
  }

 private:
  Get get_;
};

// A row for a vector of structs. A new element is Element{}, or what `start` returns.
template <class Struct, class Element>
class ListField : public OuterField {
  using Member = std::vector<Element> Struct::*;
  using Start = Element (*)(const Struct&);

 public:
  ListField(std::string_view name, Member member, const AnyFieldTable& fields, Start start,
            FieldDoc doc)
      : OuterField(name, fields, doc), member_(member), start_(start) {}

  bool is_list() const override { return true; }
  std::size_t count(const void* spec) const override {
    return (static_cast<const Struct*>(spec)->*member_).size();
  }
  const void* element(const void* spec, std::size_t index) const override {
    return &(static_cast<const Struct*>(spec)->*member_)[index];
  }
  void* add_element(void* untyped) const override {
    Struct& spec = *static_cast<Struct*>(untyped);
    Element fresh = start_ == nullptr ? Element{} : start_(spec);
    return &(spec.*member_).emplace_back(std::move(fresh));
  }

 private:
  Member member_;
  Start start_;
};

template <class Struct>
class FieldTable : public AnyFieldTable {
 public:
  using AnyFieldTable::AnyFieldTable;

  template <class T>
  void add(std::string_view name, T Struct::*member, Limits limits, FieldDoc doc) {
    add_at<T>(name, OwnMember<Struct, T>{member}, std::move(limits), doc);
  }
  template <class T>
  void add(std::string_view name, T Struct::*member, FieldDoc doc) {
    add(name, member, Limits{}, doc);
  }
  // Adds a member of `outer`, which may be optional.
  template <class Outer, class T>
  void add_inner(std::string_view name, Outer Struct::*outer, T OptionalOf<Outer>::Value::*member,
                 Limits limits, FieldDoc doc) {
    add_at<T>(name, InnerMember<Struct, Outer, T>{outer, member}, std::move(limits), doc);
  }
  template <class Outer, class T>
  void add_inner(std::string_view name, Outer Struct::*outer, T OptionalOf<Outer>::Value::*member,
                 FieldDoc doc) {
    add_inner(name, outer, member, Limits{}, doc);
  }
  // Adds a member of one alternative of a variant.
  template <class Variant, class Alternative, class T>
  void add_of(Variant Struct::*variant, std::string_view name, T Alternative::*member,
              Limits limits, FieldDoc doc) {
    using Place = AlternativeMember<Struct, Variant, Alternative, T>;
    add_at<T>(name, Place{variant, member}, std::move(limits), doc);
  }
  // Adds an entry of an array. `index` is a number or an enumerator.
  template <class T, std::size_t N, class Index>
  void add_entry(std::string_view name, std::array<T, N> Struct::*array, Index index, Limits limits,
                 FieldDoc doc) {
    add_at<T>(name, ArrayEntry<Struct, T, N>{array, static_cast<std::size_t>(index)},
              std::move(limits), doc);
  }
  void add(std::string_view name, FieldSyntax<Struct> syntax, FieldDoc doc) {
    add_row(std::make_unique<SyntaxField<Struct>>(name, syntax, doc));
  }
  template <class T>  // T is a struct described by that table, or an optional one
  void group(std::string_view name, T Struct::*member,
             const FieldTable<typename OptionalOf<T>::Value>& fields, FieldDoc doc) {
    add_row(std::make_unique<GroupField<Struct, T>>(name, member, fields, doc));
  }
  // Adds one alternative of the variant that `get` returns.
  template <class Alternative, class Get>
  void alternative(std::string_view name, Get get, const FieldTable<Alternative>& fields,
                   FieldDoc doc) {
    add_row(std::make_unique<AlternativeField<Struct, Alternative, Get>>(name, get, fields, doc));
  }
  template <class Element>
  void list(std::string_view name, std::vector<Element> Struct::*member,
            const FieldTable<Element>& fields, FieldDoc doc) {
    add_row(std::make_unique<ListField<Struct, Element>>(name, member, fields, nullptr, doc));
  }
  // The same, but `start` gives the values of the fields that a file leaves out, from the fields
  // above.
  template <class Element>
  void list(std::string_view name, std::vector<Element> Struct::*member,
            const FieldTable<Element>& fields, Element (*start)(const Struct&), FieldDoc doc) {
    add_row(std::make_unique<ListField<Struct, Element>>(name, member, fields, start, doc));
  }

  std::optional<std::string> default_of(const AnyField& field) const override {
    const Struct untouched{};
    return field.write(&untouched);
  }
  std::vector<FieldValue> in_force(const Struct& spec) const {
    return values_in_force(*this, &spec);
  }
  // Returns the fields whose values differ from those of `usual`.
  std::vector<FieldValue> changed(const Struct& spec, const Struct& usual = {}) const {
    return differing(in_force(spec), in_force(usual));
  }
  std::vector<Problem> problems(const Struct& spec) const { return limit_problems(*this, &spec); }

 private:
  template <class T, class Place>
  void add_at(std::string_view name, Place place, Limits limits, FieldDoc doc) {
    add_row(std::make_unique<MemberField<Struct, T, Place>>(name, place, std::move(limits), doc));
  }
};

}  // namespace stepsim
