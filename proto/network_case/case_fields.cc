#include "proto/network_case/case_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

namespace stepsim {
namespace {

constexpr double kMostPicoseconds = 9.2e18;
constexpr double kMostWhole = 9007199254740992.0;  // 2^53: doubles above have gaps
constexpr std::size_t kMostCaseProblems = 1000;

}  // namespace

void CaseProblems::add(std::string field, std::string message) {
  if (++count_ <= kMostCaseProblems) problems_.push_back({std::move(field), std::move(message)});
}

void CaseProblems::add(std::vector<Problem> problems) {
  for (Problem& problem : problems) add(std::move(problem.field), std::move(problem.message));
}

void CaseProblems::throw_if_any() && {
  if (count_ > kMostCaseProblems) {
    problems_.push_back({"and so on", fmt::format("{} more", count_ - kMostCaseProblems)});
  }
  stepsim::throw_if_any(std::move(problems_));
}

CaseFields::CaseFields(const std::string& list, std::size_t index, const Json& object,
                       CaseProblems& problems)
    : list_(list), index_(index), object_(object), problems_(problems) {
  if (!object.is_object()) complain("", "must be an object, is " + shown(object));
}

void CaseFields::complain(const std::string& key, const std::string& message) {
  const bool has_id = has("id") && key != "id";
  problems_.add(fmt::format("{}[{}]{}{}", list_, index_, key.empty() ? "" : ".", key),
                message + (has_id ? fmt::format(" ({} {})", list_ == "links" ? "link" : "flow",
                                                shown(object_["id"]))
                                  : ""));
}

const Json* CaseFields::find(const char* key) {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(key);
  if (found != object_.end()) return &*found;
  complain(key, "is missing");
  return nullptr;
}

std::optional<std::string> CaseFields::id(const char* key) {
  const Json* const value = find(key);
  return value == nullptr ? std::nullopt : id_of(key, *value);
}

std::optional<std::string> CaseFields::id_of(const std::string& key, const Json& value) {
  if (value.is_string() || value.is_number_integer()) {
    return json_text(value);
  }
  complain(key, "must be a string or a whole number, is " + shown(value));
  return std::nullopt;
}

std::optional<double> CaseFields::number(const char* key) {
  const Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  complain(key, "must be a number, is " + shown(*value));
  return std::nullopt;
}

std::optional<double> CaseFields::positive(const char* key) {
  const std::optional<double> value = number(key);
  if (!value || *value > 0) return value;
  complain(key, "must be above 0, is " + shown(object_[key]));
  return std::nullopt;
}

std::optional<std::int64_t> CaseFields::whole(const char* key) {
  const Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() &&
      value->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return value->get<std::int64_t>();
  }
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (number >= 0 && number <= kMostWhole && std::floor(number) == number) {
      return static_cast<std::int64_t>(number);
    }
  }
  complain(key, "must be a whole number from 0 to 9223372036854775807, is " + shown(*value));
  return std::nullopt;
}

std::optional<Duration> CaseFields::duration(const char* seconds, const char* picoseconds) {
  if (has(picoseconds)) {
    const std::optional<std::int64_t> count = whole(picoseconds);
    if (!count) return std::nullopt;
    if (static_cast<double>(*count) < kMostPicoseconds) return Duration(*count);
    complain(picoseconds, "must be below 9.2e18 (106 days), is " + std::to_string(*count));
    return std::nullopt;
  }
  const std::optional<double> value = number(seconds);
  if (!value) return std::nullopt;
  if (*value >= 0 && *value * kPicosecondsPerSecond < kMostPicoseconds) {
    return Duration(std::llround(*value * kPicosecondsPerSecond));
  }
  complain(seconds, "must be a time from 0 to 9200000 s, is " + shown(object_[seconds]));
  return std::nullopt;
}

const Json* CaseFields::list(const char* key) {
  const Json* const value = find(key);
  if (value == nullptr || value->is_array()) return value;
  complain(key, "must be a list of ids, is " + shown(*value));
  return nullptr;
}

}  // namespace stepsim
