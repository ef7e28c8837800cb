#include "traces/results/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "schedules/plan/axis.h"
#include "sim/base/shown_text.h"
#include "tests/support/hand_made_run.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

// Counts columns of a terminal, not bytes: continuation bytes of UTF-8 take no column.
std::ptrdiff_t columns(const std::string& line) {
  return std::ranges::count_if(line, [](char byte) { return (byte & 0xC0) != 0x80; });
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

// The table for the hand-made run (numbers: hand_made_run.h):
//   tokens/s   40 / 5.001 us = 7,998,400; a quarter of it a chip
//   MFU        407,040 / (5.001 us x 4 x 50 GFLOP/s = 1,000,200) = 0.40696; HFU 600,120 / the same
//   breakdown  2,000 + 1,000 + 500 + 1,501 of 5,001 ns: 39.99, 20.00, 10.00 and 30.01 %
//   bars       40 characters are the whole: 16 for compute
//   links      one of four is half full, one of three others too: mean (50 + 50) / 4 = 25 %
TEST(ReportTest, IsOneScreenThatAddsUp) {
  const std::string expected =
      R"(tiny-on-four
  tiny on four: 4 x X1
  tp 2, pp 2, 1f1b, ZeRO-1, micro-batch 1, bf16
  4 sequences of 10 tokens a step

  step time                 5.001 us
  tokens/s                 7,998,400  1,999,600 a chip
  MFU                         40.7 %  of 50.0 GFLOP/s a chip, attention counted causal; HFU 60.0 %
  energy                   not known  X1 doesn't say its power: `power` of the chip

Where the step goes     mean of all ranks
  compute               ████████████████                              2.000 us   40.0 %
  exposed tp            ████████                                      1.000 us   20.0 %
  exposed pp            ████                                          0.500 us   10.0 %
  pipeline bubble       ████████████                                  1.501 us   30.0 %
  step                                                                5.001 us  100.0 %

Critical path
  forward 70.0 % + tp 20.0 % + pp 10.0 %

Memory                  fits: 750 MB of 1.00 GB (75.0 %) on rank 2 (stage 1)
  parameters            ██████████████████████████▋                  500.00 MB   66.7 %
  activations           █████████████▍                               250.00 MB   33.3 %
  peak                                                               750.00 MB  100.0 %
  reached at 3.50 us with forward, layer 8, micro-batch 3
  peak of each stage: 300 B, 750 MB

Busiest links           utilization over the run: mean and busiest of each kind
  node*.gpu* > node*.nvswitch          4 links    25.0 %    50.0 %  node0.gpu0>node0.nvswitch
  node*.nvswitch > node*.gpu*          4 links    10.0 %    40.0 %  node0.nvswitch>node0.gpu0

Simulator               flow model, pipelined collectives
  10.0 M ops (4.0 M/s), 25.0 M events (10.0 M/s) in 2.50 s, 123 MB of memory

  result  out/tiny.json
  trace   out/tiny.trace.json.gz  (open it at https://ui.perfetto.dev)
)";
  EXPECT_EQ(report(hand_made_run().view(), {.color = false,
                                            .trace_path = "out/tiny.trace.json.gz",
                                            .json_path = "out/tiny.json"}),
            expected);
}

TEST(ReportTest, SaysByHowMuchAPlanDoesNotFitAndWhere) {
  HandMadeRun run = hand_made_run();
  run.cluster.chip.memory_capacity = Bytes(700'000'000);
  const std::string text = report(run.view(), {});
  EXPECT_NE(text.find("Memory                  DOES NOT FIT by 50.0 MB on rank 2 (stage 1)\n"
                      "  needs 750 MB of 700 MB at 3.50 us; 1 of 4 ranks need too much\n"),
            std::string::npos)
      << text;
}

TEST(ReportTest, PrintedPartsMakeThePrintedSum) {
  HandMadeRun run = hand_made_run();
  // Thirds: cut or rounded one by one, 0.333 three times would make 0.999 of a microsecond.
  run.result.breakdown = {};
  run.result.breakdown.compute = Duration(333'333);
  run.result.breakdown.bubble = Duration(333'333);
  run.result.breakdown.idle = Duration(333'334);
  run.result.step_time = Duration(1'000'000);
  const std::string text = report(run.view(), {});
  EXPECT_NE(text.find("0.333 us   33.3 %"), std::string::npos) << text;
  EXPECT_NE(text.find("0.334 us   33.4 %"), std::string::npos) << text;
  EXPECT_NE(text.find("1.000 us  100.0 %"), std::string::npos) << text;
}

TEST(ReportTest, ColorsOnlyWhenAsked) {
  const HandMadeRun run = hand_made_run();
  const std::string plain = report(run.view(), {.color = false, .trace_path = "", .json_path = ""});
  std::string colored = shown_text(
      report(run.view(), {.color = true, .trace_path = "", .json_path = ""}), /*color=*/true);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(colored.find("\x1b[1mtiny-on-four\x1b[0m"), std::string::npos);
  // Without its colours it is the same text, except for blanks at the ends of lines.
  for (std::size_t at = 0; (at = colored.find('\x1b', at)) != std::string::npos;) {
    colored.erase(at, colored.find('m', at) - at + 1);
  }
  EXPECT_EQ(lines(plain), lines(colored));
}

TEST(ReportTest, IsAtMostAHundredColumnsWide) {
  HandMadeRun run = hand_made_run();
  run.result.critical_path.clear();
  for (int i = 0; i < 20; ++i) run.result.critical_path.push_back({"backward", Duration(250'050)});
  for (std::size_t i = 0; i < kAxes; ++i) {
    run.result.breakdown.exposed_communication[i] = Duration(1'000'000'000'000'000);
  }
  for (const std::string& line : lines(report(run.view(), {}))) {
    EXPECT_LE(columns(line), 100) << line;
  }
}

TEST(ReportTest, NamesTheAxisOfTorusLinks) {
  HandMadeRun run = hand_made_run();
  Cluster torus;
  torus.chip = run.cluster.chip;
  for (int i = 0; i < 4; ++i) {
    torus.places.chips.push_back(torus.fabric.add(
        NodeKind::kChip, "chip" + std::to_string(i % 2) + "." + std::to_string(i / 2)));
  }
  Level level;
  level.size = 2;
  level.kind = LevelKind::kTorusAxis;
  for (const char* name : {"x", "y"}) {
    level.name = name;
    torus.places.levels.push_back(level);
  }
  const auto& chips = torus.places.chips;
  torus.fabric.connect(chips[0], chips[1], Bandwidth(1e9), Duration(0));
  torus.fabric.connect(chips[0], chips[2], Bandwidth(1e9), Duration(0));
  run.cluster = std::move(torus);
  run.result.links = {
      {LinkId(0), 1, 0.25}, {LinkId(1), 0, 0}, {LinkId(2), 1, 0.125}, {LinkId(3), 0, 0}};
  const std::string text = report(run.view(), {});
  EXPECT_NE(text.find("  chip* > chip* along x                2 links    12.5 %    25.0 %  "
                      "chip0.0>chip1.0\n"
                      "  chip* > chip* along y                2 links     6.2 %    12.5 %  "
                      "chip0.0>chip0.1\n"),
            std::string::npos)
      << text;
}

TEST(ReportTextTest, WrapsWordsIntoLinesThatFit) {
  ReportText text(false);
  std::string words;
  for (int i = 0; i < 40; ++i) words += "word ";
  text.wrapped(4, words);
  // 4 + 19 x 5 = 99 characters without the last blank: 19 words in a line of 100.
  std::string full = "   ";
  for (int i = 0; i < 19; ++i) full += " word";
  EXPECT_EQ(text.text(), full + "\n" + full + "\n    word word\n");
}

}  // namespace
}  // namespace stepsim
