#include "traces/results/goodput_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedClasses = 8;

// "1.5 s", "23.4 min", "3.09 h", "1.2 days".
std::string span_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{:.3g} h", seconds / 3600);
  return fmt::format("{:.4g} days", seconds / 86400);
}

const PublishedGoodput* published_figure(const GoodputOutcome& outcome) {
  const auto& entry = outcome.table.published;
  return entry && entry->experiment == outcome.experiment ? &*entry : nullptr;
}

// ---- report ----

void add_head(ReportText& text, const GoodputOutcome& outcome) {
  const TrainedJob& trained = outcome.trained;
  text.line("{}", text.paint(outcome.experiment.empty() ? "training with a given step"
                                                        : outcome.experiment,
                             Paint::kBold));
  text.line("  {} chips on {} nodes, {} spare nodes; failures: {}", grouped(trained.job.chips),
            grouped(outcome.setup.nodes), outcome.setup.spares, outcome.table.name);
  if (trained.job.spare_groups > 1) {
    text.line(
        "  spares lie in {} groups of nodes; with one of another group a step takes {:+.2f} %",
        trained.job.spare_groups, 100 * (trained.job.far_slowdown - 1));
  }
  text.line("  {} steps of {}{}", grouped(outcome.setup.work / trained.job.step),
            to_text(trained.step),
            outcome.experiment.empty()
                ? ""
                : fmt::format(": {:.4g} tokens",
                              static_cast<double>(outcome.setup.work / trained.job.step) *
                                  trained.tokens_per_step));
}

// "812 kWh", "26.4 GWh".
std::string kilowatt_hours_text(double kilowatt_hours) {
  if (kilowatt_hours >= 1e6) return fmt::format("{:.4g} GWh", kilowatt_hours / 1e6);
  if (kilowatt_hours >= 1e4) return fmt::format("{:.4g} MWh", kilowatt_hours / 1e3);
  return fmt::format("{:.4g} kWh", kilowatt_hours);
}

void add_energy(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.experiment.empty()) return;
  if (!outcome.energy) {
    text.line("  {:<{}}{:>12}  {} doesn't say its power: `power` of the chip", "energy",
              kReportLabel, "not known", outcome.chip);
    return;
  }
  const RunEnergy& energy = *outcome.energy;
  text.line("  {:<{}}{:>12}  {:.0f} W a chip in a step, {:.0f} W idle{}", "energy", kReportLabel,
            kilowatt_hours_text(energy.kilowatt_hours), outcome.power.step_watts,
            outcome.power.idle_watts,
            outcome.power.pue == 1 ? "; chips alone"
                                   : fmt::format(", times a PUE of {}", outcome.power.pue));
  text.line("  {:<{}}{:>12}  while no progress was made, and of spares", "  of which", kReportLabel,
            kilowatt_hours_text(energy.standing_kilowatt_hours));
  if (!energy.carbon_kilograms) return;
  text.line("  {:<{}}{:>10} t  of CO2, {:.4g} g a kWh", "carbon", kReportLabel,
            fmt::format("{:.4g}", *energy.carbon_kilograms / 1000),
            *energy.carbon_kilograms * 1000 / energy.kilowatt_hours);
}

void add_result(ReportText& text, const GoodputOutcome& outcome) {
  const GoodputResult& result = outcome.result;
  text.blank();
  text.line("  {:<{}}{:>12.2f}  {:.2f} to {:.2f} in 8 of 10 runs", "days", kReportLabel,
            result.mean_days, result.p10_days, result.p90_days);
  text.line("  {:<{}}{:>10.2f} %", "goodput", kReportLabel, 100 * result.goodput);
  if (const PublishedGoodput* figure = published_figure(outcome)) {
    text.line("  {:<{}}{:>10.2f} %  {}", figure->at_least ? "published: over" : "published",
              kReportLabel, 100 * figure->goodput, figure->source);
  }
  if (const auto mfu = effective_mfu(outcome)) {
    text.line("  {:<{}}{:>10.2f} %  of {:.2f} % in a step", "effective MFU", kReportLabel,
              100 * *mfu, 100 * outcome.trained.model_flops_utilization);
    text.line("  {:<{}}{:>12.4g}", "tokens a day", kReportLabel, *tokens_per_day(outcome));
  }
  if (const auto cost = cost_of(outcome)) {
    text.line("  {:<{}}{:>12}", "cost", kReportLabel, grouped(*cost));
  }
  add_energy(text, outcome);
}

void add_assumed(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.assumed.empty()) return;
  text.section("Assumed", "not asked for, and not of this cluster");
  for (const AssumedField& one : outcome.assumed) {
    text.wrapped(2, fmt::format("{} = {}: {}", one.field, one.value, one.why));
  }
}

void add_time_parts(ReportText& text, const GoodputOutcome& outcome) {
  text.section("Where the time goes", "days of a run");
  for (std::size_t i = 0; i < kRunParts; ++i) {
    const double days = outcome.result.parts_days[i];
    text.line("  {:<{}}{:>12.3f}{:>9.2f} %", name_of(static_cast<RunPart>(i)), kReportLabel, days,
              100 * days / outcome.result.mean_days);
  }
}

std::string places_text(const GoodputOutcome& outcome) {
  std::string text;
  for (std::size_t i = 0; i < kCheckpointPlaces; ++i) {
    if (!outcome.setup.checkpoint.has[i]) continue;
    text += (text.empty() ? "" : ", ") + std::string(name_of(static_cast<CheckpointPlace>(i)));
  }
  return text;
}

void add_checkpoints(ReportText& text, const GoodputOutcome& outcome) {
  const CheckpointCosts& costs = outcome.setup.checkpoint;
  text.section("Checkpoints", places_text(outcome));
  if (outcome.trained.checkpoint.value() > 0) {
    text.line("  {:<{}}{:>12}", "size", kReportLabel, to_text(outcome.trained.checkpoint));
  }
  text.line("  {:<{}}{:>12}", "every", kReportLabel, span_text(seconds_of(costs.interval)));
  if (costs.has[2] && costs.per_storage > 1) {
    text.line("  {:<{}}{:>12}", "to storage every", kReportLabel,
              span_text(seconds_of(costs.interval * costs.per_storage)));
  }
  text.line("  {:<{}}{:>12}", "training stands for", kReportLabel,
            span_text(seconds_of(costs.per_storage > 1 ? costs.copy_stall
                                                       : costs.copy_stall + costs.storage_stall)));
  if (costs.has[2]) {
    text.line("  {:<{}}{:>12}", "safe in storage after", kReportLabel,
              span_text(seconds_of(costs.storage_stall + costs.storage_flush)));
  }
  text.line("  {:<{}}{:>12}", "restart from storage", kReportLabel,
            span_text(seconds_of(outcome.setup.restart + costs.load[2])));
}

void add_failures(ReportText& text, const GoodputOutcome& outcome) {
  const GoodputResult& result = outcome.result;
  text.section("Failures", "of a run");
  text.line("  {:<{}}{:>12.1f}{}", "all", kReportLabel, result.failures,
            result.failures > 0
                ? ", one every " + span_text(result.mean_days * 86400 / result.failures)
                : "");
  std::vector<std::size_t> order(result.failures_by_class.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&result](std::size_t a, std::size_t b) {
    return result.failures_by_class[a] > result.failures_by_class[b];
  });
  for (std::size_t i = 0; i < order.size() && i < kListedClasses; ++i) {
    text.line("  {:<{}}{:>12.1f}", outcome.table.classes[order[i]].name.substr(0, 21), kReportLabel,
              result.failures_by_class[order[i]]);
  }
  if (order.size() > kListedClasses) {
    text.line("  and {} more classes", order.size() - kListedClasses);
  }
  if (result.undetected >= 0.05) {
    text.line("  {:<{}}{:>12.1f}", "corruptions not found", kReportLabel, result.undetected);
  }
}

void add_curve(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.by_interval.empty()) return;
  text.section("Other intervals", "goodput");
  const std::size_t best = best_point(outcome.by_interval);
  for (std::size_t i = 0; i < outcome.by_interval.size(); ++i) {
    const CurvePoint& point = outcome.by_interval[i];
    text.line("  {:<{}}{:>10.2f} %{}", span_text(point.x), kReportLabel, 100 * point.result.goodput,
              i == best ? "  most" : "");
  }
  text.section("Other numbers of spares", "goodput");
  const std::size_t cheapest = best_spares(outcome.by_spares, outcome.setup.nodes);
  for (std::size_t i = 0; i < outcome.by_spares.size(); ++i) {
    const CurvePoint& point = outcome.by_spares[i];
    text.line("  {:<{}}{:>10.2f} %{}", point.x, kReportLabel, 100 * point.result.goodput,
              i == cheapest ? "  most for each node that is paid for" : "");
  }
}

void add_sensitivity(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.sensitivity.empty()) return;
  text.section("Rates", "days with half   and twice the failures");
  for (std::size_t i = 0; i < outcome.sensitivity.size() && i < kListedClasses; ++i) {
    const ClassSensitivity& each = outcome.sensitivity[i];
    text.line("  {:<{}}{:>12.2f}{:>12.2f}", outcome.table.classes[each.of].name.substr(0, 21),
              kReportLabel, each.half_days, each.twice_days);
  }
}

}  // namespace

std::string goodput_report(const GoodputOutcome& outcome, bool color) {
  ReportText text(color);
  add_head(text, outcome);
  add_result(text, outcome);
  add_time_parts(text, outcome);
  add_checkpoints(text, outcome);
  add_assumed(text, outcome);
  add_failures(text, outcome);
  add_curve(text, outcome);
  add_sensitivity(text, outcome);
  text.blank();
  text.line("{} runs, {} events in {:.3g} s CPU, {} at the peak", grouped(outcome.result.runs),
            grouped(static_cast<std::int64_t>(outcome.result.events)), outcome.cpu_s,
            to_text(Bytes(outcome.peak_rss_bytes)));
  return text.text();
}

}  // namespace stepsim
