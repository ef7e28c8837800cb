#include "cli/run/what_if_text.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr double kShownShare = 0.0005;

double percent(const WhatIfRun& run, const WhatIfRun& now) {
  return 100 * (to_seconds(run.step) / to_seconds(now.step) - 1);
}

std::string change_of_step(const WhatIfRun& run, const WhatIfRun& now, bool changes_path) {
  return fmt::format("{:+.2f} %{}{}", percent(run, now), changes_path ? " *" : "  ",
                     run.fits == now.fits ? ""
                     : run.fits           ? " fits"
                                          : " too large");
}

}  // namespace

std::string sensitivity_report(const Sensitivity& sensitivity, bool color) {
  ReportText text(color);
  text.section("Sensitivity", "what a step would take, each simulated");
  text.line("  {:<20}{:>15}{:>18}{:>18}{:>14}", "", "now", "10 % less  ", "10 % more  ",
            "path's slope");
  bool changes = false;
  for (const LeverEffect& effect : sensitivity.effects) {
    changes = changes || effect.less_changes_path || effect.more_changes_path;
    text.line("  {:<20}{:>15}{:>18}{:>18}{:>14}", effect.lever.name, effect.lever.text(1),
              change_of_step(effect.less, sensitivity.now, effect.less_changes_path),
              change_of_step(effect.more, sensitivity.now, effect.more_changes_path),
              effect.slope ? fmt::format("{:.4f}", *effect.slope + 0.0) : "-");
  }
  if (!sensitivity.no_slopes.empty()) {
    text.wrapped(2, "The critical path has no slopes here: " + sensitivity.no_slopes + ".");
    return text.text();
  }
  text.wrapped(2,
               "The slope is the derivative of the critical path as it is: percent of the step for "
               "each percent more.");
  if (sensitivity.shared >= kShownShare) {
    text.wrapped(2, fmt::format("{:.1f} % of the path is transfers that share links with others "
                                "which come and go. Their parts of the links are held in the "
                                "slope, which is not exact for them.",
                                100 * sensitivity.shared));
  }
  if (changes) {
    text.wrapped(2, "*: the critical path changes on the way, so the slope does not hold so far.");
  }
  return text.text();
}

std::string breakeven_report(const Breakeven& breakeven, bool color) {
  ReportText text(color);
  const Lever& lever = breakeven.lever;
  const bool is_time = lever.kind == LeverKind::kTime;
  text.section("Breakeven", lever.name);
  const auto line = [&](std::string_view name, const std::string& value, const WhatIfRun& run) {
    text.line("  {:<20}{:>15}{:>15.4f} s", name, value, to_seconds(run.step));
  };
  line("now", lever.text(1), breakeven.now);
  line("breakeven", lever.text(breakeven.factor), breakeven.there);
  line(is_time ? "none" : "endless", "", breakeven.endless);
  text.wrapped(2, fmt::format("{} than {} helps by less than 1 %.", is_time ? "Less" : "More",
                              lever.text(breakeven.factor)));
  return text.text();
}

Tornado tornado_of(const Sensitivity& sensitivity, const std::string& name) {
  Tornado tornado{.title = "What 10 % changes",
                  .subtitle = name,
                  .x = {.label = "change of the step", .unit = "%"},
                  .less = "10 % less",
                  .more = "10 % more"};
  for (const LeverEffect& effect : sensitivity.effects) {
    tornado.rows.push_back({effect.lever.name, percent(effect.less, sensitivity.now),
                            percent(effect.more, sensitivity.now)});
  }
  return tornado;
}

}  // namespace stepsim
