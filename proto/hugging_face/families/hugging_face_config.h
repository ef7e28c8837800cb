// HuggingFaceConfig reads keys of one config.json and reports those that are missing or of the
// wrong kind. It remembers which keys were read: a key that shapes models of some family and was
// not read must not be ignored silently. Which keys these are follows from the readers themselves
// (keys_of_families() in hugging_face_families.h), which run over a listing for it: a configuration
// that has everything, or nothing, and reports nothing.
//
// Null means absent. Sizes and counts are at most kMostOfAny. `field` is the model's field that a
// key gives. A problem of the key is not reported a second time under that field.

#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proto/messages/json_value.h"
#include "proto/messages/problem_list.h"

namespace stepsim {

class HuggingFaceConfig {
 public:
  static constexpr std::int64_t kMostOfAny = 1 << 21;
  using Keys = std::set<std::string, std::less<>>;

  // `name` is the file's name, for problems. `object` must outlive this.
  HuggingFaceConfig(std::string name, const Json& object, ProblemList& problems)
      : name_(std::move(name)), object_(object), problems_(problems) {}

  // Returns a listing: it has every key, each with a value other than its default, or none.
  static HuggingFaceConfig listing(bool has_all, ProblemList& problems);
  const Keys& asked() const { return read_; }

  bool has(std::string_view key);

  // Reads a size of the model, which must be given.
  std::int64_t size(std::string_view key, std::string_view field, std::int64_t most = kMostOfAny);
  std::int64_t size_or(std::string_view key, std::string_view field, std::int64_t absent);
  // The same for a period, by which layers are counted: never 0, also where it is reported.
  std::int64_t period_or(std::string_view key, std::string_view field, std::int64_t absent) {
    return std::max<std::int64_t>(1, size_or(key, field, absent));
  }
  // The same for a value that may be 0.
  std::int64_t count_or(std::string_view key, std::string_view field, std::int64_t absent);
  bool flag_or(std::string_view key, bool absent);
  double number_or(std::string_view key, double absent);
  // Reads a list of texts, whole numbers or true and false; empty if absent. The first entry of
  // another kind is reported with its place, and ends the list.
  std::vector<bool> flags(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::int64_t> numbers(std::string_view key);
  std::string text_or(std::string_view key, const std::string& absent);
  bool is_text(std::string_view key) { return has(key) && !lists_ && at(key).is_string(); }
  // Reads a text that must be one of these.
  std::string choice_or(std::string_view key, const std::vector<std::string>& choices,
                        const std::string& absent);
  // Reads a whole number of any sign.
  std::int64_t integer_or(std::string_view key, std::int64_t absent);
  // Reads the indices of layers, each from `first` to `last` (in the file's own counting).
  std::vector<std::int64_t> layers(std::string_view key, std::int64_t first, std::int64_t last);
  // Reads a count that the file gives once, or for each layer in a list of equal numbers.
  std::int64_t uniform(std::string_view key, std::string_view field);
  // Returns the keys of an object under this key; an empty one if it is missing, which is a
  // problem.
  HuggingFaceConfig nested(std::string_view key);
  // Returns the same keys, those of `lists` as the first entry of their list where they have one.
  // REQUIRES: `object` outlives the result.
  HuggingFaceConfig with_first_entries(const Keys& lists, Json& object);
  // What was asked of the other counts as asked of this.
  void take_asked(const HuggingFaceConfig& other) {
    read_.insert(other.read_.begin(), other.read_.end());
  }
  std::vector<std::string> keys() const;  // of the object
  // Returns the first key of the object, or "".
  std::string first_key() const { return object_.empty() ? "" : object_.begin().key(); }
  // Requires that the key is absent or has this value, because models cannot express another one.
  void expect(std::string_view key, const Json& value, std::string_view why);

  // Returns the width of one head if the file does not give it.
  std::int64_t divide_over_heads(std::int64_t width, std::int64_t heads, std::string_view key);

  // Returns the first of two spellings that the file has.
  std::string_view either(std::string_view key, std::string_view other) {
    const bool has_other = has(other);
    return has(key) || !has_other ? key : other;
  }

  // Suppresses later problems of the model's field, because a key has been reported as their cause.
  void leave_out(std::string_view field) { problems_.mark_reported("model." + std::string(field)); }

  void refuse(std::string_view key, std::string_view field, std::string message);
  void refuse_if(bool wrong, std::string_view key, std::string message) {
    if (wrong) refuse(key, "", std::move(message));
  }

  // Refuses those of `keys` that the file gives, say something, and were not asked for by `family`.
  void refuse_unread(std::string_view family, const Keys& keys);

  // Returns the objects of a list, one a layer; none if the key is missing or of another kind,
  // which is a problem.
  std::vector<HuggingFaceConfig> objects(std::string_view key);

 private:
  template <typename Value>
  std::vector<Value> list(std::string_view key, bool (Json::*is_value)() const,
                          std::string_view values);
  std::int64_t whole(std::string_view key, std::string_view field, std::int64_t least,
                     std::int64_t most = kMostOfAny);
  const Json& at(std::string_view key) const { return object_.find(key).value(); }

  std::string name_;
  const Json& object_;
  ProblemList& problems_;
  Keys read_{};
  bool lists_ = false;  // a listing,
  bool all_ = false;    // which has everything
};

}  // namespace stepsim
