#include "proto/catalog/load_mix.h"

#include <string_view>

#include "proto/catalog/catalog.h"
#include "proto/messages/read_fields.h"
#include "proto/request_mix.pb.h"
#include "sim/base/field_text.h"

namespace stepsim {

RequestMix load_mix(const std::string& name, const std::string& field,
                    std::vector<Problem>& problems) {
  const CatalogAnswer answer = find(CatalogKind::kMix, name);
  if (!answer.found) {
    problems.push_back({field, answer.problem});
    return {};
  }
  ProblemList found;
  file::RequestMix message;
  if (read_message(*answer.found, "", message, found)) {
    if (message.input().empty()) found.add("input", "must be given");
    if (message.output().empty()) found.add("output", "must be given");
    if (message.source().empty()) found.add("source", "must be given");
  }
  for (const Problem& problem : found.all()) problems.push_back(problem);
  return {.input = message.input(), .output = message.output()};
}

std::string with_mix(const std::string& requests, std::vector<Problem>& problems) {
  constexpr std::string_view kKey = "mix=";
  const std::size_t colon = requests.find(':');
  if (colon == std::string::npos) return requests;
  std::string result = requests.substr(0, colon + 1);
  const std::string_view keys = std::string_view(requests).substr(colon + 1);
  for (const std::string_view key : split_text(keys, ',')) {
    if (result.back() != ':') result += ',';
    if (!key.starts_with(kKey)) {
      result += key;
      continue;
    }
    const RequestMix mix =
        load_mix(std::string(key.substr(kKey.size())), "--requests mix", problems);
    result += "input=" + mix.input + ",output=" + mix.output;
  }
  return result;
}

}  // namespace stepsim
