#include "sim/network/transport/transport_text.h"

#include <algorithm>
#include <string>

#include "sim/base/suggestion.h"
#include "sim/network/transport/transport_table.h"

namespace stepsim {

TransportSpec read_transport_text(std::string_view text, const TransportSpec& start,
                                  std::vector<Problem>& problems) {
  constexpr const char* kOption = "--transport";
  TransportSpec spec = start;
  const std::vector<std::string_view> parts = split_text(text, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos) {
      const auto kind = i == 0 ? Text<TransportKind>::read(parts[i]) : std::nullopt;
      if (kind) {
        spec = default_transport(*kind);
      } else if (i == 0) {
        problems.push_back({kOption, refused_text(Text<TransportKind>::accepts(), parts[i],
                                                  Text<TransportKind>::hint(parts[i]))});
      } else {
        problems.push_back(
            {kOption, "must be key=value behind the name, is \"" + shortened(parts[i]) + "\""});
      }
      continue;
    }
    std::string key(parts[i].substr(0, equals));
    std::ranges::replace(key, '-', '_');
    const AnyField* const field = transport_fields().find(key);
    if (field == nullptr) {
      problems.push_back({kOption, shortened(key) + " is no field of a transport" +
                                       did_you_mean(key, transport_fields().names())});
      continue;
    }
    for (const std::string& problem : field->read(parts[i].substr(equals + 1), &spec)) {
      problems.push_back({kOption, key + " " + problem});
    }
    if (const auto broken = limit_problem(*field, &spec)) {
      problems.push_back({kOption, key + " " + *broken});
    }
  }
  for (const Problem& problem : check_transport(spec, 0, 0)) {
    problems.push_back({kOption, problem.field + " " + problem.message});
  }
  return spec;
}

}  // namespace stepsim
