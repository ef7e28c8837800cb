// ScheduleName identifies a published pipeline schedule. Its name and all other facts are in the
// table of published/published_schedule.h.
//
// The value is a hash of the name. So only a schedule that code or tests mention needs an
// enumerator; a row of the table needs none.

#pragma once

#include <cstdint>
#include <string_view>

namespace stepsim {

// FNV-1a of the name. A check in the table ensures that no two rows have the same value.
constexpr std::uint32_t schedule_id(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
  return hash;
}

enum class ScheduleName : std::uint32_t {
  kNaive = schedule_id("naive"),
  kNaiveSequential = schedule_id("naive_sequential"),
  kGPipe = schedule_id("gpipe"),
  kGPipeLifo = schedule_id("gpipe_lifo"),
  kOneForwardOneBackward = schedule_id("1f1b"),
  kEagerOneForwardOneBackward = schedule_id("eager_1f1b"),
  kInterleaved = schedule_id("interleaved_1f1b"),
  kBreadthFirst = schedule_id("breadth_first"),
  kBreadthFirstLifo = schedule_id("breadth_first_lifo"),
  kZeroBubbleH1 = schedule_id("zb_h1"),
  kZeroBubbleH1QuickStart = schedule_id("zb_h1_quickstart"),
  kZeroBubbleH2 = schedule_id("zb_h2"),
  kZeroBubbleAuto1P = schedule_id("zb_auto_1p"),
  kZeroBubbleAuto2P = schedule_id("zb_auto_2p"),
  kInterleavedZeroBubble = schedule_id("interleaved_zb1p"),
  kZeroBubbleVHand = schedule_id("zbv_hand"),
  kZeroBubbleVAuto = schedule_id("zbv_auto"),
  kVHalf = schedule_id("v_half"),
  kVMin = schedule_id("v_min"),
  kDualPipe = schedule_id("dualpipe"),
  kDualPipeV = schedule_id("dualpipev"),
  kChimera = schedule_id("chimera"),
  kHanayo = schedule_id("hanayo"),
};

}  // namespace stepsim
