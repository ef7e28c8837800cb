// ScheduleName is the name of a published pipeline schedule, as people write it in plans, in
// experiments and behind `stepsim schedule`.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

enum class ScheduleName : std::uint8_t {
  kNaive,
  kNaiveSequential,
  kGPipe,
  kGPipeLifo,
  kOneForwardOneBackward,
  kEagerOneForwardOneBackward,
  kInterleaved,
  kBreadthFirst,
  kBreadthFirstLifo,
  kZeroBubbleH1,
  kZeroBubbleH1QuickStart,
  kZeroBubbleH2,
  kZeroBubbleAuto1P,
  kZeroBubbleAuto2P,
  kInterleavedZeroBubble,
  kZeroBubbleVHand,
  kZeroBubbleVAuto,
  kVHalf,
  kVMin,
  kDualPipe,
  kDualPipeV,
  kChimera,
  kHanayo,
};

inline constexpr std::array kScheduleNames = {ScheduleName::kNaive,
                                              ScheduleName::kNaiveSequential,
                                              ScheduleName::kGPipe,
                                              ScheduleName::kGPipeLifo,
                                              ScheduleName::kOneForwardOneBackward,
                                              ScheduleName::kEagerOneForwardOneBackward,
                                              ScheduleName::kInterleaved,
                                              ScheduleName::kBreadthFirst,
                                              ScheduleName::kBreadthFirstLifo,
                                              ScheduleName::kZeroBubbleH1,
                                              ScheduleName::kZeroBubbleH1QuickStart,
                                              ScheduleName::kZeroBubbleH2,
                                              ScheduleName::kZeroBubbleAuto1P,
                                              ScheduleName::kZeroBubbleAuto2P,
                                              ScheduleName::kInterleavedZeroBubble,
                                              ScheduleName::kZeroBubbleVHand,
                                              ScheduleName::kZeroBubbleVAuto,
                                              ScheduleName::kVHalf,
                                              ScheduleName::kVMin,
                                              ScheduleName::kDualPipe,
                                              ScheduleName::kDualPipeV,
                                              ScheduleName::kChimera,
                                              ScheduleName::kHanayo};

std::string_view name_of(ScheduleName schedule);  // "1f1b", "zb_h1"
std::optional<ScheduleName> schedule_named(std::string_view name);
std::string schedule_names();  // "naive, naive_sequential, ..."

}  // namespace stepsim
