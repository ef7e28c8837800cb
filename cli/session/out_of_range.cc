#include "cli/session/out_of_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/base/quantity_text.h"

namespace stepsim {

std::vector<Problem> named(const Fabric& fabric) {
  const std::vector<Link>& links = fabric.links();
  if (links.empty()) return {};
  const auto name = [&](const Link& link) {
    return fabric.nodes()[link.from.index()].name + " to " + fabric.nodes()[link.to.index()].name;
  };
  const Link& slowest = *std::ranges::min_element(links, {}, &Link::bandwidth);
  const Link& longest = *std::ranges::max_element(links, {}, &Link::latency);
  return {{"cluster",
           fmt::format("its slowest link, {}, has {}, and its longest, {}, takes {}", name(slowest),
                       to_text(slowest.bandwidth), name(longest), to_text(longest.latency))}};
}

std::vector<Problem> named(const ParallelPlan& plan, const Fabric& fabric, const ChipSpec& chip) {
  std::vector<Problem> fields = named(fabric);
  fields.push_back(
      {"cluster.chip",
       fmt::format("its memory has {}, and its peak in {} is {}", to_text(chip.memory_bandwidth),
                   name_of(plan.precision.type), to_text(chip.peak_of(plan.precision.type)))});
  fields.push_back({"plan", fmt::format("it has sequence={}, global_batch={}, microbatch={}",
                                        plan.batch.sequence, plan.batch.global_batch,
                                        plan.batch.microbatch_size)});
  return fields;
}

ConfigError out_of_range(const std::string& what, std::vector<Problem> fields) {
  for (Problem& field : fields) field.message = what + "; " + field.message;
  return ConfigError(std::move(fields));
}

}  // namespace stepsim
