#include "proto/mlp_stack_text.h"

#include <array>
#include <string>
#include <utility>

#include "proto/messages/message_fields.h"

namespace stepsim {
namespace {

constexpr std::string_view kPrefix = "mlp-stack";
constexpr std::string_view kExample = "mlp-stack:D=8192,F=32768,layers=32";

}  // namespace

bool is_mlp_stack_text(std::string_view flag) {
  return flag == kPrefix || flag.starts_with(std::string(kPrefix) + ":");
}

void read_mlp_stack_text(std::string_view flag, file::Model& model, ProblemList& problems) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFields{
      {{"D", "hidden"}, {"F", "intermediate"}, {"layers", "layers"}}};
  model.set_kind("mlp_stack");
  std::array<bool, kFields.size()> given{};
  std::string_view rest = flag.substr(kPrefix.size());
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    const std::size_t equals = entry.find('=');
    const std::string_view key = entry.substr(0, equals);
    std::size_t field = 0;
    while (field < kFields.size() && kFields[field].first != key) ++field;
    if (equals == std::string_view::npos || field == kFields.size()) {
      problems.add("--model " + std::string(entry),
                   "must be one of D, F and layers, as in " + std::string(kExample));
    } else if (std::exchange(given[field], true)) {
      problems.add("--model " + std::string(key), "is given twice");
    } else if (const auto problem =
                   set_field(model, kFields[field].second, entry.substr(equals + 1))) {
      problems.add("--model " + std::string(key), *problem);
      problems.mark_reported("model." + std::string(kFields[field].second));
    }
    rest = comma == std::string_view::npos ? "" : rest.substr(comma);
  }
  for (std::size_t field = 0; field < kFields.size(); ++field) {
    if (given[field]) continue;
    problems.add("--model " + std::string(kFields[field].first),
                 "must be given, as in " + std::string(kExample));
    problems.mark_reported("model." + std::string(kFields[field].second));
  }
  model.set_name(std::string(flag));
}

}  // namespace stepsim
