// CommunicationReports is what channels, collectives and host copies tell the loop: which ops have
// ended, and who had to wait for whom. The loop hands the reports on and clears them.

#pragma once

#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

// A communication op that has ended on a stream.
struct CommunicationEnd {
  RankStreamId stream;
  Time moving;  // everybody whom it needs had posted: before, it only waited
  bool waited_for_other_stage = false;  // the last to post stands on another pipeline stage
};

// All who are needed have posted: `stream` goes on because of the last of them, `from`.
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
