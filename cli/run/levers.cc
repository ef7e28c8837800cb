#include "cli/run/levers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "proto/messages/json_value.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

std::string_view last_name(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

// Returns the amount of a field in SI base units (picoseconds for times); nothing if there is none.
std::optional<double> amount_of(const std::string& text, LeverKind kind) {
  switch (kind) {
    case LeverKind::kThroughput:
      if (const auto rate = parse_throughput(text)) return rate->value();
      break;
    case LeverKind::kBandwidth:
      if (const auto rate = parse_bandwidth(text)) return rate->value();
      break;
    case LeverKind::kBytes:
      if (const auto size = parse_bytes(text)) return static_cast<double>(size->value());
      break;
    case LeverKind::kTime:
      if (const auto time = parse_duration(text)) return static_cast<double>(time->count());
      break;
  }
  return std::nullopt;
}

std::string scaled_text(const std::string& text, LeverKind kind, double factor) {
  const double amount = amount_of(text, kind).value_or(0) * factor;
  if (kind == LeverKind::kTime) return exact_seconds(Duration(std::llround(amount)));
  if (kind == LeverKind::kBytes) return fmt::format("{}", std::llround(amount));
  return fmt::format("{}", amount);
}

struct LeverName {
  std::string name;
  LeverKind kind;
};

// The lever that a field of the cluster belongs to.
std::optional<LeverName> lever_of_chip(std::string_view path) {
  if (path.starts_with("cluster.chip.peak[") && path.ends_with(".throughput")) {
    return LeverName{"flops", LeverKind::kThroughput};
  }
  if (path == "cluster.chip.memory_bandwidth") {
    return LeverName{"memory_bandwidth", LeverKind::kBandwidth};
  }
  if (path == "cluster.chip.memory_capacity") {
    return LeverName{"memory_capacity", LeverKind::kBytes};
  }
  if (path == "cluster.chip.launch_overhead" || path == "software.host_launch_cost") {
    return LeverName{"launch_overhead", LeverKind::kTime};
  }
  return std::nullopt;
}

std::optional<LeverName> lever_of_library(std::string_view path) {
  const std::string_view name = last_name(path);
  const bool is_of_collectives = path.starts_with("cluster.library.timing[");
  if (is_of_collectives && (name == "start" || name == "doubling" || name.ends_with("_hop"))) {
    return LeverName{"library_latency", LeverKind::kTime};
  }
  return std::nullopt;
}

std::optional<LeverName> lever_of(std::string_view path) {
  if (auto lever = lever_of_chip(path)) return lever;
  if (path.starts_with("cluster.library.")) return lever_of_library(path);
  const std::string_view name = last_name(path);
  if (path.find(".host.") != std::string_view::npos) {
    if (!name.ends_with("bandwidth")) return std::nullopt;
    return LeverName{"host_bandwidth", LeverKind::kBandwidth};
  }
  if (!path.starts_with("cluster.") || path.starts_with("cluster.chip.") ||
      path.starts_with("cluster.faults")) {
    return std::nullopt;
  }
  if (name.ends_with("bandwidth")) return LeverName{std::string(name), LeverKind::kBandwidth};
  if (name.ends_with("latency")) return LeverName{"latency", LeverKind::kTime};
  return std::nullopt;
}

void add_field(const std::string& path, const std::string& value, std::vector<Lever>& levers) {
  const auto name = lever_of(path);
  if (!name) return;
  const auto amount = amount_of(value, name->kind);
  if (!amount || *amount <= 0) return;
  auto at = std::ranges::find(levers, name->name, &Lever::name);
  if (at == levers.end()) at = levers.insert(levers.end(), {name->name, name->kind, {}});
  at->fields.push_back({path, value});
}

void add_fields(const Json& value, const std::string& path, std::vector<Lever>& levers) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      add_fields(member, path.empty() ? key : path + "." + key, levers);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      add_fields(value[i], path + "[" + std::to_string(i) + "]", levers);
    }
  } else if (value.is_string()) {
    add_field(path, value.get<std::string>(), levers);
  }
}

// The peak that stands for all of them is that of the type in which the plan computes.
void put_peak_of_plan_first(const Json& record, std::vector<Lever>& levers) {
  const auto member = [](const Json& of, const char* name) {
    return of.is_object() ? of.value(name, Json()) : Json();
  };
  const Json type = member(member(record, "plan"), "dtype");
  const Json peaks = member(member(member(record, "cluster"), "chip"), "peak");
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    if (type.is_null() || member(peaks[i], "type") != type) continue;
    const std::string path = fmt::format("cluster.chip.peak[{}].throughput", i);
    for (Lever& lever : levers) {
      const auto field = std::ranges::find(lever.fields, path, &LeverField::path);
      if (field != lever.fields.end()) std::rotate(lever.fields.begin(), field, field + 1);
    }
  }
}

}  // namespace

std::vector<std::string> Lever::scaled(double factor) const {
  std::vector<std::string> texts;
  for (const LeverField& field : fields) {
    texts.push_back(field.path + "=" + scaled_text(field.value, kind, factor));
  }
  return texts;
}

std::string Lever::text(double factor) const {
  const auto is_like_first = [&](const LeverField& field) {
    return field.value == fields.front().value;
  };
  if (!std::ranges::all_of(fields, is_like_first)) return fmt::format("x {:.3g}", factor);
  const double amount = amount_of(fields.front().value, kind).value_or(0) * factor;
  switch (kind) {
    case LeverKind::kThroughput:
      return to_text(Throughput(amount));
    case LeverKind::kBandwidth:
      return to_text(Bandwidth(amount));
    case LeverKind::kBytes:
      return to_text(Bytes(std::llround(amount)));
    case LeverKind::kTime:
      break;
  }
  return to_text(Duration(std::llround(amount)));
}

std::vector<Lever> levers_of(const std::string& record_fields) {
  std::vector<Lever> levers;
  if (const std::optional<Json> record = parse_json(record_fields).value) {
    add_fields(*record, "", levers);
    put_peak_of_plan_first(*record, levers);
  }
  return levers;
}

Lever lever_named(const std::vector<Lever>& levers, const std::string& name,
                  const std::string& option, std::vector<Problem>& problems) {
  std::vector<std::string> names;
  for (const Lever& lever : levers) {
    if (lever.name == name) return lever;
    names.push_back(lever.name);
  }
  for (const Lever& lever : levers) {
    Lever chosen{name, lever.kind, {}};
    for (const LeverField& field : lever.fields) {
      if (field.path == name || last_name(field.path) == name) chosen.fields.push_back(field);
    }
    if (!chosen.fields.empty()) return chosen;
  }
  problems.push_back(
      {option, "must be something that the hardware has, is \"" + name + "\"" +
                   did_you_mean(name, names, "There are: " + comma_separated(names))});
  return {};
}

}  // namespace stepsim
