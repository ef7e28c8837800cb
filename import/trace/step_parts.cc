#include "import/trace/step_parts.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace stepsim {
namespace {

// A part of a slice that counts as one kind.
struct Piece {
  std::int64_t start = 0;
  std::int64_t end = 0;
  SliceKind kind = SliceKind::kOtherWork;
};

int class_of(SliceKind kind) {
  if (kind == SliceKind::kWaiting) return 0;
  return communicates(kind) ? 1 : 2;
}

bool is_wait_alone(const TraceSlice& slice) {
  return slice.moving == slice.end && slice.end > slice.start;
}

std::vector<Piece> pieces_of(const RankTrace& rank, const TraceStep& step, bool tells_waits) {
  std::vector<Piece> pieces;
  const auto add = [&](std::int64_t start, std::int64_t end, SliceKind kind) {
    start = std::max(start, step.begin);
    end = std::min(end, step.end);
    if (start < end) pieces.push_back({start, end, kind});
  };
  for (const TraceSlice& slice : rank.slices) {
    const bool waits = tells_waits && communicates(slice.kind);
    const std::int64_t moving = waits ? slice.moving : slice.start;
    add(slice.start, moving, SliceKind::kWaiting);
    add(moving, slice.end, slice.kind);
  }
  return pieces;
}

}  // namespace

StepParts parts_of(const RankTrace& rank, const TraceStep& step, bool tells_waits) {
  StepParts parts;
  const std::vector<Piece> pieces = pieces_of(rank, step, tells_waits);
  struct Edge {
    std::int64_t at;
    bool begins;
    std::size_t piece;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    edges.push_back({pieces[i].start, true, i});
    edges.push_back({pieces[i].end, false, i});
  }
  std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
    return std::tuple(a.at, a.begins, a.piece) < std::tuple(b.at, b.begins, b.piece);
  });
  const auto counts_before = [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t piece) {
      return std::tuple(-class_of(pieces[piece].kind), -pieces[piece].start, pieces[piece].end,
                        piece);
    };
    return key(a) < key(b);
  };
  std::set<std::size_t, decltype(counts_before)> active(counts_before);
  std::int64_t at = step.begin;
  const auto count_until = [&](std::int64_t until) {
    if (until <= at) return;
    const SliceKind kind = active.empty() ? SliceKind::kIdle : pieces[*active.begin()].kind;
    parts.nanoseconds[static_cast<std::size_t>(kind)] += until - at;
    if (kind == SliceKind::kIdle) ++parts.counts[static_cast<std::size_t>(kind)];
    at = until;
  };
  for (const Edge& edge : edges) {
    count_until(edge.at);
    if (edge.begins) {
      active.insert(edge.piece);
    } else {
      active.erase(edge.piece);
    }
  }
  count_until(step.end);
  for (const TraceSlice& slice : rank.slices) {
    if (slice.start < step.begin || slice.start >= step.end) continue;
    const bool waits = tells_waits && communicates(slice.kind) && slice.moving > slice.start;
    if (waits) ++parts.counts[static_cast<std::size_t>(SliceKind::kWaiting)];
    if (!is_wait_alone(slice)) ++parts.counts[static_cast<std::size_t>(slice.kind)];
  }
  return parts;
}

std::vector<const TraceSlice*> slices_in(const RankTrace& rank, const TraceStep& step) {
  std::vector<const TraceSlice*> slices;
  for (const TraceSlice& slice : rank.slices) {
    const bool is_inside = slice.start >= step.begin && slice.start < step.end;
    if (is_inside && !is_wait_alone(slice)) slices.push_back(&slice);
  }
  return slices;
}

}  // namespace stepsim
