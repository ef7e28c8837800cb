#include "schedules/pipeline/schedule_name.h"

namespace stepsim {

std::string_view name_of(ScheduleName schedule) {
  switch (schedule) {
    case ScheduleName::kNaive:
      return "naive";
    case ScheduleName::kNaiveSequential:
      return "naive_sequential";
    case ScheduleName::kGPipe:
      return "gpipe";
    case ScheduleName::kGPipeLifo:
      return "gpipe_lifo";
    case ScheduleName::kOneForwardOneBackward:
      return "1f1b";
    case ScheduleName::kEagerOneForwardOneBackward:
      return "eager_1f1b";
    case ScheduleName::kInterleaved:
      return "interleaved_1f1b";
    case ScheduleName::kBreadthFirst:
      return "breadth_first";
    case ScheduleName::kBreadthFirstLifo:
      return "breadth_first_lifo";
    case ScheduleName::kZeroBubbleH1:
      return "zb_h1";
    case ScheduleName::kZeroBubbleH1QuickStart:
      return "zb_h1_quickstart";
    case ScheduleName::kZeroBubbleH2:
      return "zb_h2";
    case ScheduleName::kZeroBubbleAuto1P:
      return "zb_auto_1p";
    case ScheduleName::kZeroBubbleAuto2P:
      return "zb_auto_2p";
    case ScheduleName::kInterleavedZeroBubble:
      return "interleaved_zb1p";
    case ScheduleName::kZeroBubbleVHand:
      return "zbv_hand";
    case ScheduleName::kZeroBubbleVAuto:
      return "zbv_auto";
    case ScheduleName::kVHalf:
      return "v_half";
    case ScheduleName::kVMin:
      return "v_min";
    case ScheduleName::kDualPipe:
      return "dualpipe";
    case ScheduleName::kDualPipeV:
      return "dualpipev";
    case ScheduleName::kChimera:
      return "chimera";
    case ScheduleName::kHanayo:
      return "hanayo";
  }
  return "";
}

std::optional<ScheduleName> schedule_named(std::string_view name) {
  for (const ScheduleName schedule : kScheduleNames) {
    if (name_of(schedule) == name) return schedule;
  }
  return std::nullopt;
}

std::string schedule_names() {
  std::string names;
  for (const ScheduleName schedule : kScheduleNames) {
    names += (names.empty() ? "" : ", ") + std::string(name_of(schedule));
  }
  return names;
}

}  // namespace stepsim
