#include "sim/network/transport/transport_text.h"

#include <algorithm>
#include <string>

#include "sim/base/suggestion.h"
#include "sim/network/transport/transport_table.h"

namespace stepsim {

namespace {

constexpr const char* kOption = "--transport";

}  // namespace

TransportParts split_transport_text(std::string_view text, std::vector<Problem>& problems) {
  TransportParts found;
  const std::vector<std::string_view> parts = split_text(text, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos) {
      if (i > 0) {
        problems.push_back(
            {kOption, "must be key=value behind the name, is \"" + shortened(parts[i]) + "\""});
        continue;
      }
      found.kind = Text<TransportKind>::read(parts[i]);
      if (found.kind) continue;
      problems.push_back({kOption, refused_text(Text<TransportKind>::accepts(), parts[i],
                                                Text<TransportKind>::hint(parts[i]))});
      continue;
    }
    std::string key(parts[i].substr(0, equals));
    std::ranges::replace(key, '-', '_');
    if (transport_fields().find(key) == nullptr) {
      problems.push_back({kOption, shortened(key) + " is no field of a transport" +
                                       did_you_mean(key, transport_fields().names())});
      continue;
    }
    found.fields.emplace_back(std::move(key), parts[i].substr(equals + 1));
  }
  return found;
}

TransportSpec read_transport_text(std::string_view text, const TransportSpec& start,
                                  std::vector<Problem>& problems) {
  const TransportParts parts = split_transport_text(text, problems);
  TransportSpec spec = parts.kind ? default_transport(*parts.kind) : start;
  for (const auto& [key, value] : parts.fields) {
    const AnyField& field = *transport_fields().find(key);
    for (const std::string& problem : field.read(value, &spec)) {
      problems.push_back({kOption, key + " " + problem});
    }
    if (const auto broken = limit_problem(field, &spec)) {
      problems.push_back({kOption, key + " " + *broken});
    }
  }
  for (const Problem& problem : check_transport(spec, 0, 0)) {
    problems.push_back({kOption, problem.field + " " + problem.message});
  }
  return spec;
}

}  // namespace stepsim
