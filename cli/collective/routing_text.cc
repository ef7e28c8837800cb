#include "cli/collective/routing_text.h"

#include <algorithm>
#include <set>

#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

const std::vector<std::string> kKeys = {"experts", "top-k",      "tokens", "token-bytes",
                                        "copies",  "node-limit", "load"};

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto read = number_in<Number>(text);
  value = read.value_or(value);
  return read.has_value();
}

// Returns the problem of a key's value; "" if there is none.
std::string read_value(const std::string& key, std::string_view text, ExpertRouting& routing) {
  const std::string is = ", is \"" + std::string(text) + "\"";
  const auto whole = [&](auto& value) {
    return read_number(text, value) ? std::string() : "must be a whole number" + is;
  };
  if (key == "experts") return whole(routing.experts);
  if (key == "top-k") return whole(routing.top_k);
  if (key == "tokens") return whole(routing.tokens);
  if (key == "node-limit") return whole(routing.node_limit);
  if (key == "token-bytes") {
    const auto bytes = parse_bytes(text);
    routing.token_bytes = bytes.value_or(Bytes(1));
    return bytes ? std::string() : "must be " + std::string(accepted_bytes()) + is;
  }
  if (key == "copies") {
    for (const TokenCopies copies :
         {TokenCopies::kPerExpert, TokenCopies::kPerMember, TokenCopies::kPerNode}) {
      if (name_of(copies) != text) continue;
      routing.copies = copies;
      return {};
    }
    return "must be expert, member or node" + is;
  }
  while (true) {
    const std::size_t colon = text.find(':');
    double load = 0;
    if (!read_number(text.substr(0, colon), load)) {
      return "must be numbers with colons between them, as in 3:1:1:1" + is;
    }
    routing.load.push_back(load);
    if (colon == std::string_view::npos) return {};
    text.remove_prefix(colon + 1);
  }
}

}  // namespace

ExpertRouting read_routing(std::string_view text, std::uint32_t members,
                           std::uint32_t members_of_node, std::vector<Problem>& problems) {
  ExpertRouting routing{.members = members, .members_of_node = members_of_node};
  std::set<std::string> seen;
  const std::size_t before = problems.size();
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    const std::size_t equals = entry.find('=');
    const std::string key(entry.substr(0, equals));
    const std::string field = "--routing " + key;
    if (std::ranges::find(kKeys, key) == kKeys.end() || equals == std::string_view::npos) {
      problems.push_back({field, "must be one of " + comma_separated(kKeys) +
                                     ", with = and a value" + did_you_mean(key, kKeys)});
    } else if (!seen.insert(key).second) {
      problems.push_back({field, "is given twice"});
    } else {
      const std::string wrong = read_value(key, entry.substr(equals + 1), routing);
      if (!wrong.empty()) problems.push_back({field, wrong});
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  for (const char* key : {"experts", "top-k", "tokens", "token-bytes"}) {
    if (!seen.contains(key)) problems.push_back({"--routing " + std::string(key), "must be given"});
  }
  if (problems.size() != before) return routing;
  for (Problem& problem : check(routing)) {
    std::string key = problem.field;
    for (char& c : key) {
      if (c == '_') c = '-';
    }
    problems.push_back({"--routing " + key, std::move(problem.message)});
  }
  return routing;
}

}  // namespace stepsim
