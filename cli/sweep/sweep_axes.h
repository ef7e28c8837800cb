// The points of a sweep: axes as people write them, crossed.
//
//   plan.tp=1,2,4                         three points
//   plan.tp=1,2,4,plan.dp=8,4,2           three points, too: fields of one axis go together
//   plan.microbatch=1..4                  whole numbers
//   plan.layout=7,14*8,7;8*10             values with commas in them: semicolons between them
//
// The last axis varies fastest.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

// SweepAxis is one or several fields that go together.
struct SweepAxis {
  struct Field {
    std::string path;                 // as for --set: "plan.tp"
    std::vector<std::string> values;  // as many as those of the other fields
  };
  std::vector<Field> fields{};

  std::size_t size() const { return fields.empty() ? 0 : fields.front().values.size(); }
};

class SweepSpace {
 public:
  // Adds a problem under `source` ("--over") for each text that is no axis, for fields that are
  // given twice, and if there are more than ten million points.
  SweepSpace(const std::vector<std::string>& texts, const std::string& source,
             std::vector<Problem>& problems);

  std::uint64_t size() const;  // 1 without axes
  const std::vector<SweepAxis>& axes() const { return axes_; }
  std::vector<std::string> paths() const;  // of all axes

  // Returns the value of each path. REQUIRES: number < size().
  std::vector<std::string> values(std::uint64_t number) const;
  // Returns the same as "path=value", for --set.
  std::vector<std::string> overrides(std::uint64_t number) const;

 private:
  std::vector<SweepAxis> axes_;
};

}  // namespace stepsim
