// CommunicationReports is what channels, collectives and host copies report to the loop: the ops
// that have ended, and who waited for whom. The loop passes the reports on and clears them.

#pragma once

#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

// A communication op that has ended on a stream.
struct CommunicationEnd {
  RankStreamId stream;
  Time moving;                          // when all needed peers had posted; before, it only waited
  bool waited_for_other_stage = false;  // the last to post stands on another pipeline stage
  std::optional<RankStreamId> last{};   // the stream that was the last to post
};

// All needed ranks have posted: `stream` continues because of the last of them, `from`.
struct Join {
  RankStreamId stream;
  RankStreamId from;
};

struct CommunicationReports {
  std::vector<CommunicationEnd> ends;
  std::vector<Join> joins;
  std::vector<Join> arrows;  // data: from sender to receiver, from the last member to the others

  void clear() {
    ends.clear();
    joins.clear();
    arrows.clear();
  }
};

}  // namespace stepsim
