#include "experiment/published_fields.h"

#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

// A figure is one of several fields. The field's name is the metric, its value is in base units.
template <PublishedMetric kMetric, class Quantity>
FieldSyntax<PublishedFigure> metric_syntax() {
  return {.read = [](std::string_view text, PublishedFigure& figure) -> std::vector<std::string> {
            const std::optional<Quantity> value = Text<Quantity>::read(text);
            if (!value) {
              return {refused_text(Text<Quantity>::accepts(), text, Text<Quantity>::hint(text))};
            }
            figure.metric = kMetric;
            figure.value = Text<Quantity>::number(*value);
            return {};
          },
          .write = [](const PublishedFigure& figure) -> std::optional<std::string> {
            if (figure.metric != kMetric || figure.value == 0) return std::nullopt;
            return write_double(figure.value);
          },
          .accepts = [] { return Text<Quantity>::accepts(); }};
}

const FieldSyntax<PublishedFigure> kAttentionSyntax = {
    .read = [](std::string_view text, PublishedFigure& figure) -> std::vector<std::string> {
      const bool is_causal = text == "causal";
      if (!is_causal && text != "full") return {refused_text("causal or full", text, "")};
      figure.attention = is_causal ? AttentionFlops::kCausal : AttentionFlops::kFull;
      return {};
    },
    .write = [](const PublishedFigure& figure) -> std::optional<std::string> {
      return figure.attention == AttentionFlops::kCausal ? "causal" : "full";
    },
    .accepts = [] { return std::string("causal or full"); }};

void add_metrics(FieldTable<PublishedFigure>& table) {
  using Metric = PublishedMetric;
  table.add("step_time", metric_syntax<Metric::kStepTime, Duration>(), {.help = "Time of a step."});
  table.add("tokens_per_s", metric_syntax<Metric::kTokensPerSecond, double>(),
            {.help = "Tokens a second of all chips."});
  table.add("flops_per_chip", metric_syntax<Metric::kFlopsPerChip, Throughput>(),
            {.help = "Model FLOPs a second of a chip."});
  table.add("model_flops_utilization", metric_syntax<Metric::kModelFlopsUtilization, double>(),
            {.help = "MFU, 0 to 1, of the peak of the plan's compute type."});
  table.add("hardware_flops_utilization",
            metric_syntax<Metric::kHardwareFlopsUtilization, double>(), {.help = "HFU, 0 to 1."});
  table.add("peak_memory", metric_syntax<Metric::kPeakMemory, Bytes>(),
            {.help = "Memory of the chip that needs most."});
  table.add("tpot", metric_syntax<Metric::kTimePerToken, Duration>(),
            {.help = "Mean time of a token behind the first, of a served experiment."});
  table.add("ttft", metric_syntax<Metric::kTimeToFirstToken, Duration>(),
            {.help = "Mean time to the first token, of a served experiment."});
  table.add("output_tokens_per_s_per_chip", metric_syntax<Metric::kOutputTokensPerChip, double>(),
            {.help = "Tokens of answers a second and chip, of a served experiment."});
}

FieldTable<PublishedFigure> make_figure_fields() {
  FieldTable<PublishedFigure> table("Published");
  add_metrics(table);
  table.add("attention_flops", kAttentionSyntax,
            {.help = "How the publication counts the FLOPs of attention: half of the token pairs "
                     "(causal), or all of them.",
             .rules = "With flops_per_chip and model_flops_utilization only."});
  table.add("low", &PublishedFigure::low,
            {.help = "Smallest expected ratio of simulated to published.",
             .rules = "A range beyond 0.9 to 1.1 has a reason in `why`."});
  table.add("high", &PublishedFigure::high,
            {.help = "Largest expected ratio of simulated to published."});
  table.add("source", &PublishedFigure::source,
            {.help = "Where it was published: paper and table, or repository and file."});
  table.add("plan", &PublishedFigure::plan,
            {.help = "The plan that it was measured with, if it isn't that of the experiment."});
  table.add("why", &PublishedFigure::why, {.help = "Reason for a range beyond 0.9 to 1.1."});
  return table;
}

}  // namespace

const FieldTable<Publication>& publication_fields() {
  static const FieldTable<Publication> kTable = [] {
    static const FieldTable<PublishedFigure> kFigure = make_figure_fields();
    FieldTable<Publication> table("Experiment");
    table.list("published", &Publication::figures, kFigure,
               {.help = "Figures that others measured and published."});
    table.add("not_published", &Publication::none, {.help = "Why there is no published figure."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
