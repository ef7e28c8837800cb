#include "sim/collectives/byte_matrix.h"

#include <algorithm>

namespace stepsim {

namespace {

Bytes largest(const ByteMatrix& matrix, bool with_own) {
  Bytes result;
  for (std::uint32_t member = 0; member < matrix.members; ++member) {
    Bytes sent;
    Bytes received;
    for (std::uint32_t other = 0; other < matrix.members; ++other) {
      if (other == member && !with_own) continue;
      sent += matrix.between(member, other);
      received += matrix.between(other, member);
    }
    result = std::max({result, sent, received});
  }
  return result;
}

}  // namespace

Bytes largest_buffer(const ByteMatrix& matrix) {
  return largest(matrix, true);
}

Bytes busiest_port(const ByteMatrix& matrix) {
  return largest(matrix, false);
}

}  // namespace stepsim
