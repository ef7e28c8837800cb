#include "topology/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/palette.h"
#include "sim/base/quantity_text.h"
#include "sim/base/small_letters.h"
#include "sim/base/xml_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostColours = 6;  // of bandwidths
constexpr double kTint = 0.9;            // of shapes: of the way to the paper

// The fill of chips, switches, hosts and NICs.
std::string fill_of(NodeKind kind) {
  return mixed(series_colour(static_cast<std::size_t>(kind)).light, neutral("paper"), kTint);
}

constexpr std::uint32_t kMostInARow = 8;
// More equal parts than this beside one another are not all drawn: only the first ones and the
// last.
constexpr std::uint32_t kMostParts = 5;
constexpr std::uint32_t kFirstParts = 2;
// Places that a thinned axis of a torus is drawn with: the first two, those between, and the last.
constexpr std::uint32_t kThinPlaces = 4;
// In inches:
constexpr double kSlantAcross = 0.5;
constexpr double kSlantUp = 0.3;
constexpr double kWideSlantAcross = 1.1;  // of places that stand for several chips
constexpr double kWideSlantUp = 0.45;
constexpr double kCircleStep = 1.6;
constexpr double kStub = 0.5;

// Reach holds the chips that a node serves, as a range of chip numbers, and its distance from them.
struct Reach {
  std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t last = 0;
  std::uint32_t hops = 0;  // distance; 0 for a chip
};

// Finds the reach level by level, away from the chips. A node that no chip is near serves all of
// them.
std::vector<Reach> reaches_of(const BuiltTopology& built) {
  const std::size_t nodes = built.fabric.nodes().size();
  std::vector<std::optional<Reach>> reaches(nodes);
  for (std::uint32_t chip = 0; chip < built.places.chips.size(); ++chip) {
    reaches[built.places.chips[chip].index()] = Reach{.first = chip, .last = chip};
  }
  for (std::uint32_t hops = 1;; ++hops) {
    std::map<std::size_t, Reach> found;
    const auto extend = [&](NodeId known, NodeId unknown) {
      const std::optional<Reach>& near = reaches[known.index()];
      if (!near || reaches[unknown.index()]) return;
      Reach& reach = found[unknown.index()];
      reach.first = std::min(reach.first, near->first);
      reach.last = std::max(reach.last, near->last);
      reach.hops = hops;
    };
    for (const Link& link : built.fabric.links()) {
      extend(link.from, link.to);
      extend(link.to, link.from);
    }
    if (found.empty()) break;
    for (const auto& [node, reach] : found) reaches[node] = reach;
  }
  const auto last_chip = static_cast<std::uint32_t>(built.places.chips.size()) - 1;
  std::vector<Reach> all;
  for (const auto& reach : reaches) all.push_back(reach.value_or(Reach{0, last_chip, 1}));
  return all;
}

// Turns "node3.gpu5" into "node*.gpu*".
std::string pattern_of(std::string_view name) {
  std::string pattern;
  for (const char character : name) {
    const bool digit = is_digit(character);
    if (!digit) pattern += character;
    if (digit && !pattern.ends_with('*')) pattern += '*';
  }
  return pattern;
}

// DrawnNode is a node of the drawing: one node of the fabric, or several together.
struct DrawnNode {
  std::string label;
  NodeKind kind = NodeKind::kChip;
  Reach reach;
  std::vector<int> at{};               // position on the remaining axes of a torus, outermost last
  bool is_named = true;                // false: its content says what it is
  std::map<std::string, int> content;  // nodes in a box: pattern of the name, count
};

// Line is a line of the drawing: all links between two shapes.
struct Line {
  int forth = 0;
  int back = 0;
  Bandwidth most{};   // largest bandwidth of a link, one way
  Bandwidth total{};  // total of the better direction
  Bandwidth sum_forth{};
  Bandwidth sum_back{};
};

class Drawing {
 public:
  Drawing(const BuiltTopology& built, const DotOptions& options)
      : built_(built), options_(options), reaches_(reaches_of(built)) {
    is_torus_ = std::ranges::all_of(built.places.levels, [](const Level& level) {
      return level.kind == LevelKind::kTorusAxis;
    });
    collapse();
    elide();
    place_nodes();
    join();
  }

  std::uint32_t chips_per_box() const { return box_; }

  std::string text() {
    text_ = "graph topology {\n";
    text_ += layout();
    text_ += fmt::format(
        "  label=<{0}>; labelloc=b; fontname=\"Helvetica\"; fontsize=14; newrank=true;\n"
        "  node [fontname=\"Helvetica\", fontsize=9, style=filled, fillcolor=\"{1}\", "
        "color=\"{2}\", margin=\"0.06,0.03\", height=0.25, width=0.3];\n"
        "  edge [fontname=\"Helvetica\", fontsize=8];\n",
        legend(), fill_of(NodeKind::kChip), neutral("faint"));
    if (is_torus_) {
      for (std::size_t i = 0; i < shapes_.size(); ++i) add_shape(i, "  ", "");
    } else {
      add_frames();
    }
    for (const auto& [ends, line] : lines_) add_line(ends.first, ends.second, line);
    return text_ + "}\n";
  }

 private:
  // Grids fix their places. A graph without an above and below goes round a circle.
  std::string_view layout() const {
    if (is_torus_) return "  layout=neato; splines=line; notranslate=true;\n";
    const bool is_flat = std::ranges::all_of(lines_, [this](const auto& line) {
      return shapes_[line.first.first].reach.hops == shapes_[line.first.second].reach.hops;
    });
    if (is_flat) return "  layout=circo; mindist=0.4;\n";
    return "  layout=dot; rankdir=TB; ordering=out; nodesep=0.15; ranksep=0.9;\n";
  }

  // Where a node is drawn: nodes of equal keys are one shape.
  struct Slot {
    std::string key;
    bool is_several = false;       // the shape lists its content
    std::string label{};           // empty: the node's own name
    std::optional<Reach> reach{};  // unset: the node's own
  };

  // Decides how many chips form a box.
  void collapse() {
    if (built_.fabric.nodes().size() <= options_.most_nodes) return;
    // Thinned, two and three axes can all be seen. A single one is a ring of boxes.
    is_thinned_ = is_torus_ && built_.places.levels.size() > 1;
    if (is_thinned_) return;
    const std::size_t chips = built_.places.chips.size();
    for (const Level& level : built_.places.levels) {
      if (box_ * level.size == chips && level.size > 1) {
        parts_in_box_ = parts_of_box(level.size);
        box_ *= parts_in_box_;
        return;
      }
      box_ *= level.size;
      ++box_levels_;
      if (chips / box_ <= options_.most_boxes) return;
    }
  }

  // One box would show nothing, so the last level is divided: by its smallest switches, if there
  // are such, and evenly, if it can be. Returns how many of its parts a box has.
  std::uint32_t parts_of_box(std::uint32_t size) const {
    const std::uint32_t unit = std::max(1U, chips_of_smallest_switch() / box_);
    const auto most = static_cast<std::uint32_t>(options_.most_boxes);
    for (std::uint32_t parts = unit; 2 * parts <= size; parts += unit) {
      if (size % parts == 0 && size / parts <= most) return parts;
    }
    return (size + most - 1) / most;
  }

  // Returns how many chips the smallest switch serves of those that serve several, not all; 1 if
  // there is none.
  std::uint32_t chips_of_smallest_switch() const {
    const auto all = static_cast<std::uint32_t>(built_.places.chips.size());
    std::uint32_t least = all;
    for (const Reach& reach : reaches_) {
      const std::uint32_t served = reach.last - reach.first + 1;
      if (reach.hops > 0 && served > 1) least = std::min(least, served);
    }
    return least < all ? least : 1;
  }

  bool is_divided(std::size_t level) const { return parts_in_box_ > 1 && level == box_levels_; }

  bool is_collapsed() const { return box_ > 1; }

  // Returns the chips of a group of `inner` levels.
  std::uint32_t chips_of_group(std::size_t inner) const {
    std::uint32_t chips = 1;
    for (std::size_t level = 0; level < inner; ++level) chips *= built_.places.levels[level].size;
    return chips;
  }

  // What a group is made of: how many links of each kind begin or end in it.
  using Signature = std::map<std::tuple<std::uint32_t, std::uint32_t, Bandwidth>, int>;

  std::vector<Signature> signatures(std::size_t inner) const {
    std::map<std::string, std::uint32_t> numbers;
    std::vector<std::uint32_t> pattern;
    for (const Node& node : built_.fabric.nodes()) {
      const auto number = static_cast<std::uint32_t>(numbers.size());
      pattern.push_back(numbers.emplace(pattern_of(node.name), number).first->second);
    }
    const std::uint32_t chips = chips_of_group(inner);
    std::vector<Signature> all(built_.places.chips.size() / chips);
    for (const Link& link : built_.fabric.links()) {
      const std::tuple kind(pattern[link.from.index()], pattern[link.to.index()], link.bandwidth);
      for (const NodeId end : {link.from, link.to}) {
        const Reach& reach = reaches_[end.index()];
        if (reach.first / chips == reach.last / chips) ++all[reach.first / chips][kind];
      }
    }
    return all;
  }

  // Decides which groups are not drawn by themselves: where many stand side by side, those that are
  // made of the same as the second one.
  void elide() {
    const std::vector<Level>& levels = built_.places.levels;
    elided_.resize(levels.size());
    const std::size_t first_level = box_levels_ + (parts_in_box_ > 1 ? 1 : 0);
    for (std::size_t inner = first_level; !is_torus_ && inner < levels.size(); ++inner) {
      const std::uint32_t parts = levels[inner].size;
      const std::uint32_t most = inner == 0 ? kMostInARow : kMostParts;
      if (levels[inner].kind == LevelKind::kTorusAxis || parts <= most) continue;
      const std::vector<Signature> made_of = signatures(inner);
      elided_[inner].resize(made_of.size());
      for (std::size_t group = 0; group < made_of.size(); ++group) {
        const std::size_t part = group % parts;
        const bool is_like = made_of[group] == made_of[group - part + 1];
        elided_[inner][group] = part >= kFirstParts && part + 1 < parts && is_like;
      }
    }
  }

  bool is_elided(std::size_t inner, std::uint32_t number) const {
    return inner < elided_.size() && !elided_[inner].empty() && elided_[inner][number];
  }

  // Returns how many levels the outermost group has that this node is in and that isn't drawn.
  std::optional<std::size_t> elided_group_of(const Reach& reach) const {
    for (std::size_t inner = elided_.size(); inner-- > 0;) {
      const std::uint32_t chips = chips_of_group(inner);
      if (reach.first / chips != reach.last / chips) return std::nullopt;
      if (is_elided(inner, reach.first / chips)) return inner;
    }
    return std::nullopt;
  }

  // Returns the position on the axes of a torus that remain between boxes.
  std::vector<int> position(std::uint32_t chip) const {
    std::vector<int> at;
    for (std::size_t level = box_levels_; level < built_.places.levels.size(); ++level) {
      at.push_back(place_on_axis(built_.places.coordinate(chip, level), level));
    }
    return at;
  }

  bool is_thinned(std::size_t level) const {
    return is_thinned_ && built_.places.levels[level].size > kThinPlaces;
  }
  int place_on_axis(std::uint32_t coordinate, std::size_t level) const {
    if (is_divided(level)) return static_cast<int>(coordinate / parts_in_box_);
    if (!is_thinned(level) || coordinate < kFirstParts) return static_cast<int>(coordinate);
    const bool is_last = coordinate + 1 == built_.places.levels[level].size;
    return static_cast<int>(is_last ? kThinPlaces - 1 : kFirstParts);
  }

  // All chips of a place of a thinned torus: "2-14.0.1".
  Slot place_of(std::uint32_t chip) const {
    std::string name;
    bool is_several = false;
    for (std::size_t level = 0; level < built_.places.levels.size(); ++level) {
      const std::uint32_t coordinate = built_.places.coordinate(chip, level);
      const bool is_between = is_thinned(level) && place_on_axis(coordinate, level) == kFirstParts;
      is_several = is_several || is_between;
      name += name.empty() ? "" : ".";
      name += is_between ? fmt::format("{}-{}", kFirstParts, built_.places.levels[level].size - 2)
                         : std::to_string(coordinate);
    }
    return {.key = name, .is_several = is_several, .label = name};
  }

  // A box of a collapsed drawing.
  Slot box_of(const Reach& reach) const {
    const std::uint32_t number = reach.first / box_;
    const std::uint32_t first = number * box_;
    const auto chips = static_cast<std::uint32_t>(built_.places.chips.size());
    const std::uint32_t last = std::min(first + box_, chips) - 1;
    return {.key = fmt::format("box {}", number),
            .is_several = true,
            .label = parts_in_box_ == 1 ? group_name(box_levels_, number)
                     : first == last    ? name_at(first)
                                        : fmt::format("{} to {}", name_at(first), name_at(last)),
            .reach = Reach{.first = first, .last = last}};
  }

  // All groups of a larger one that aren't drawn by themselves.
  Slot more_of(std::size_t inner, const Reach& reach) const {
    const std::uint32_t chips = chips_of_group(inner);
    const std::uint32_t parts = built_.places.levels[inner].size;
    const std::uint32_t first = reach.first / chips / parts * parts;
    std::uint32_t count = 0;
    for (std::uint32_t part = 0; part < parts; ++part) count += is_elided(inner, first + part);
    return {.key = fmt::format("more {} {}", inner, first / parts),
            .is_several = true,
            .label = fmt::format("{} more", count),
            .reach = Reach{.first = (first + kFirstParts) * chips,
                           .last = (first + parts - 1) * chips - 1,
                           .hops = 0}};
  }

  // Switches of one kind that serve the same chips.
  using Siblings = std::tuple<std::string, std::uint32_t, std::uint32_t>;
  Siblings siblings_of(std::size_t node) const {
    const Reach& reach = reaches_[node];
    return {pattern_of(built_.fabric.nodes()[node].name), reach.first, reach.last};
  }

  bool is_outside(const Reach& reach) const { return reach.first / box_ != reach.last / box_; }

  // Many siblings share a shape, but for the first ones and the last one. Outside the boxes of a
  // collapsed drawing all of them share it. nullopt: the node is drawn by itself.
  std::optional<Slot> slot_among_siblings(std::size_t node, std::size_t number, std::size_t count,
                                          bool merges_all) const {
    const auto& [pattern, first, last] = siblings_of(node);
    const std::string key = fmt::format("{} {} {}", pattern, first, last);
    if (merges_all) return Slot{.key = key, .is_several = true};
    const bool is_drawn = number < kFirstParts || number + 1 == count;
    if (is_torus_ || count <= kMostInARow || is_drawn) return std::nullopt;
    return Slot{
        .key = key, .is_several = true, .label = fmt::format("{} more", count - kFirstParts - 1)};
  }

  void place_nodes() {
    std::size_t outside = 0;
    std::map<Siblings, std::size_t> counts;
    std::map<Siblings, std::size_t> seen;
    for (std::size_t node = 0; node < reaches_.size(); ++node) {
      outside += is_outside(reaches_[node]) ? 1U : 0U;
      if (reaches_[node].hops > 0) ++counts[siblings_of(node)];
    }
    const bool merges_outside = is_collapsed() && outside > options_.most_switches;
    std::map<std::string, std::size_t> by_key;
    for (std::size_t node = 0; node < reaches_.size(); ++node) {
      const Node& what = built_.fabric.nodes()[node];
      const Reach& reach = reaches_[node];
      Slot slot{.key = what.name};
      if (is_thinned_) {
        slot = place_of(reach.first);
      } else if (const auto inner = elided_group_of(reach)) {
        slot = more_of(*inner, reach);
      } else if (is_collapsed() && !is_outside(reach)) {
        slot = box_of(reach);
      } else if (reach.hops > 0) {
        const Siblings kind = siblings_of(node);
        slot = slot_among_siblings(node, seen[kind]++, counts[kind],
                                   merges_outside && is_outside(reach))
                   .value_or(std::move(slot));
      }
      add_to_shape(slot, what, reach, by_key);
    }
  }

  void add_to_shape(const Slot& slot, const Node& what, const Reach& reach,
                    std::map<std::string, std::size_t>& by_key) {
    const auto [place, is_new] = by_key.emplace(slot.key, shapes_.size());
    shape_of_.push_back(place->second);
    if (is_new) {
      shapes_.push_back({.label = slot.label.empty() ? what.name : slot.label,
                         .kind = slot.reach ? NodeKind::kChip : what.kind,
                         .reach = slot.reach.value_or(reach),
                         .at = is_torus_ ? position(reach.first) : std::vector<int>{},
                         .is_named = !slot.is_several || !slot.label.empty(),
                         .content = {}});
    }
    if (slot.is_several) ++shapes_[place->second].content[pattern_of(what.name)];
  }

  const std::string& name_at(std::uint32_t chip) const {
    return built_.fabric.node(built_.places.chips[chip]).name;
  }

  // Returns the common part of the names of a group's chips. `inner`: number of levels inside the
  // group.
  std::string group_name(std::size_t inner, std::uint32_t number) const {
    std::uint32_t chips = 1;
    for (std::size_t level = 0; level < inner; ++level) chips *= built_.places.levels[level].size;
    const std::string& first = name_at(number * chips);
    const std::string& last = name_at(number * chips + chips - 1);
    const auto common =
        static_cast<std::size_t>(std::ranges::mismatch(first, last).in1 - first.begin());
    const std::size_t dot = common == 0 ? std::string::npos : first.rfind('.', common - 1);
    const std::string prefix = dot == std::string::npos ? "" : first.substr(0, dot);
    const std::vector<Level>& levels = built_.places.levels;
    std::string axes;  // a part of a torus is named by its position on the remaining axes
    for (std::size_t level = inner; level < levels.size(); ++level) {
      if (levels[level].kind != LevelKind::kTorusAxis) break;
      axes += fmt::format("{}{} {}", axes.empty() ? "" : ", ", levels[level].name,
                          built_.places.coordinate(number * chips, level));
    }
    if (!axes.empty()) return is_torus_ || prefix.empty() ? axes : prefix + ": " + axes;
    if (!prefix.empty()) return prefix;
    if (inner >= levels.size()) return "all";
    return fmt::format("{} {}", levels[inner].name, number);
  }

  void join() {
    for (const Link& link : built_.fabric.links()) {
      const std::size_t from = shape_of_[link.from.index()];
      const std::size_t to = shape_of_[link.to.index()];
      if (from == to) continue;
      Line& line = lines_[std::minmax(from, to)];
      (from < to ? line.forth : line.back) += 1;
      (from < to ? line.sum_forth : line.sum_back) += link.bandwidth;
      line.most = std::max(line.most, link.bandwidth);
      line.total = std::max(line.sum_forth, line.sum_back);
    }
    for (const auto& [ends, line] : lines_) colors_.emplace(line.most, "");
    std::size_t next = 0;
    for (auto color = colors_.rbegin(); color != colors_.rend(); ++color) {
      color->second = series_colour(std::min(next++, kMostColours - 1)).light;
    }
  }

  std::string legend() const {
    std::string text = "<br/>" + xml_escaped(options_.title);
    if (is_collapsed()) text += fmt::format("<br/>collapsed: a box is {} chips", box_);
    if (is_thinned_)
      text += "<br/>thinned: \"2-14\" are all places between the second and the last one";
    const bool has_more = std::ranges::any_of(
        shapes_, [](const DrawnNode& shape) { return shape.label.ends_with(" more"); });
    if (has_more) text += "<br/>more: as those beside them, connected alike";
    text += "<br/>";
    std::size_t named = 0;
    for (auto color = colors_.rbegin(); color != colors_.rend(); ++color) {
      if (++named > kMostColours) {
        text += " and less";
        break;
      }
      text += fmt::format("<font color=\"{}\">{} {}</font>  ", color->second, "\u2014",
                          to_text(color->first));
    }
    return text + " one way a link";
  }

  static std::string form(NodeKind kind) {
    switch (kind) {
      case NodeKind::kChip:
        return "shape=box";
      case NodeKind::kSwitch:
        return fmt::format("shape=ellipse, fillcolor=\"{}\"", fill_of(kind));
      case NodeKind::kHost:
        return fmt::format("shape=hexagon, fillcolor=\"{}\"", fill_of(kind));
      case NodeKind::kNic:
        break;
    }
    return fmt::format("shape=diamond, fillcolor=\"{}\"", fill_of(kind));
  }

  // Returns whether the network is a single ring, which is drawn as a circle.
  bool is_circle() const {
    if (!is_torus_ || built_.places.levels.size() != box_levels_ + 1) return false;
    const Level& level = built_.places.levels.back();
    return level.wraps && level.size > kMostInARow;
  }

  int axis_size(std::size_t axis) const {
    const std::size_t level = box_levels_ + axis;
    if (level >= built_.places.levels.size()) return 1;
    if (is_divided(level)) {
      const std::uint32_t size = built_.places.levels[level].size;
      return static_cast<int>((size + parts_in_box_ - 1) / parts_in_box_);
    }
    return is_thinned(level) ? static_cast<int>(kThinPlaces)
                             : static_cast<int>(built_.places.levels[level].size);
  }

  // Returns the position in inches of a place on up to three axes. Every place of x and y has space
  // for a slanting row of all its z.
  std::pair<double, double> on_paper(const std::vector<int>& at) const {
    const auto axis = [&at](std::size_t i) { return i < at.size() ? at[i] : 0; };
    if (is_circle()) {
      const double turn = 2 * std::numbers::pi * axis(0) / axis_size(0);
      const double radius = kCircleStep * axis_size(0) / (2 * std::numbers::pi);
      return {radius * std::sin(turn), radius * std::cos(turn)};
    }
    const double slant_across = is_thinned_ ? kWideSlantAcross : kSlantAcross;
    const double slant_up = is_thinned_ ? kWideSlantUp : kSlantUp;
    const bool is_wide = is_collapsed() || is_thinned_;
    const double across = (is_collapsed() ? 2.2 : is_wide ? 1 : 0.7) + slant_across * axis_size(2);
    const double up = (is_collapsed() ? 1.0 : 0.5) + slant_up * axis_size(2);
    return {across * axis(0) + slant_across * axis(2), up * axis(1) + slant_up * axis(2)};
  }

  // A name in the quotes of a label, where Graphviz knows entities and "\\n".
  static std::string label_text(std::string_view name) {
    std::string text;
    for (const char letter : xml_escaped(name)) {
      if (letter == '\\') text += '\\';
      text += letter == '\n' ? ' ' : letter;
    }
    return text;
  }

  // The chips of a grid are named by their position alone.
  static std::string without_chip(const std::string& name) {
    constexpr std::string_view kChip = "chip";
    return name.starts_with(kChip) ? name.substr(kChip.size()) : name;
  }

  void add_shape(std::size_t i, std::string_view indent, const std::string& frame) {
    const DrawnNode& shape = shapes_[i];
    std::string label = shape.label;
    if (!frame.empty() && label.starts_with(frame + ".")) label.erase(0, frame.size() + 1);
    if (is_torus_) label = without_chip(label);
    label = shape.is_named ? label_text(label) : "";
    for (const auto& [name, count] : shape.content) {
      label += fmt::format("{}{} {}", label.empty() ? "" : "\\n", count, label_text(name));
    }
    std::string place;
    if (is_torus_) {
      auto [x, y] = on_paper(shape.at);
      if (shape.reach.hops > 0) {  // a host goes between the corners of its chips
        const auto [last_x, last_y] = on_paper(position(shape.reach.last));
        x = (x + last_x) / 2;
        y = (y + last_y) / 2;
      }
      place = fmt::format(", pos=\"{:.2f},{:.2f}!\"", x, y);
    }
    text_ +=
        fmt::format("{}n{} [label=\"{}\", {}{}];\n", indent, i, label, form(shape.kind), place);
  }

  // Draws nested frames of the switched levels around chips and the nodes that serve only them.
  void add_frames() { add_frame(built_.places.levels.size(), 0, "  ", ""); }

  void add_frame(std::size_t inner, std::uint32_t number, const std::string& indent,
                 const std::string& around) {
    std::uint32_t chips = 1;
    for (std::size_t level = 0; level < inner; ++level) chips *= built_.places.levels[level].size;
    if (inner == 0 || chips <= box_) {
      for (std::size_t i = 0; i < shapes_.size(); ++i) {
        if (shapes_[i].reach.first / chips == number && shapes_[i].reach.last / chips == number) {
          add_shape(i, indent, around);
        }
      }
      return;
    }
    const bool framed = chips < built_.places.chips.size() &&
                        built_.places.levels[inner].kind == LevelKind::kSwitched;
    const std::string name = framed ? group_name(inner, number) : around;
    const std::string deeper = framed ? indent + "  " : indent;
    if (framed) {
      text_ += fmt::format(
          "{}subgraph \"cluster {} {}\" {{ label=\"{}\"; fontsize=10; style=rounded; "
          "color=\"{}\";\n",
          indent, inner, number, label_text(name), neutral("gap"));
    }
    const std::uint32_t parts = built_.places.levels[inner - 1].size;
    const std::uint32_t part_chips = chips / parts;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const Reach& reach = shapes_[i].reach;
      const bool here = reach.first / chips == number && reach.last / chips == number;
      if (here && reach.first / part_chips != reach.last / part_chips) add_shape(i, deeper, name);
    }
    for (std::uint32_t part = 0; part < parts; ++part) {
      if (is_elided(inner - 1, number * parts + part)) continue;
      add_frame(inner - 1, number * parts + part, deeper, name);
    }
    if (framed) text_ += indent + "}\n";
  }

  // Returns whether two shapes are neighbours on the grid, or a host and its chip.
  bool is_short(const DrawnNode& a, const DrawnNode& b) const {
    if (a.reach.hops > 0 || b.reach.hops > 0) return true;
    int apart = 0;
    for (std::size_t axis = 0; axis < a.at.size(); ++axis) {
      apart += std::abs(a.at[axis] - b.at[axis]);
    }
    return apart == 1;
  }

  void add_line(std::size_t a, std::size_t b, const Line& line) {
    std::string style = fmt::format("color=\"{}\"", colors_.at(line.most));
    const int links = std::max(line.forth, line.back);
    if (links > 1 && !is_thinned_) {
      style += fmt::format(", label=\"{} links\\n{}\"", links, to_text(line.total));
    }
    if (line.forth == 0 || line.back == 0) {
      style += line.forth == 0 ? ", dir=back" : ", dir=forward";
    }
    if (is_torus_ && !is_circle() && !is_short(shapes_[a], shapes_[b])) {
      add_stub(a, b, style);
      add_stub(b, a, style);
      return;
    }
    // Switches stand above the nodes that they join.
    const bool a_above = shapes_[a].reach.hops > shapes_[b].reach.hops;
    const bool is_one_way = line.forth == 0 || line.back == 0;
    const auto [first, second] = a_above || is_one_way ? std::pair(a, b) : std::pair(b, a);
    text_ += fmt::format("  n{} -- n{} [{}];\n", first, second, style);
  }

  // Draws the start of a cable round the end of an axis. It leaves the grid, away from the other
  // end.
  void add_stub(std::size_t from, std::size_t to, const std::string& style) {
    const std::vector<int>& at = shapes_[from].at;
    const std::vector<int>& other = shapes_[to].at;
    std::size_t along = 0;  // the first axis that it leaves at an end
    for (std::size_t axis = at.size(); axis-- > 0;) {
      const int last = axis_size(axis) - 1;
      if ((at[axis] == 0 && other[axis] == last) || (at[axis] == last && other[axis] == 0)) {
        along = axis;
      }
    }
    std::vector<int> beyond = at;
    beyond[along] += at[along] == 0 ? -1 : 1;
    const auto [x, y] = on_paper(at);
    const auto [outside_x, outside_y] = on_paper(beyond);
    const double length = std::hypot(outside_x - x, outside_y - y);
    const double share = kStub / length;
    text_ += fmt::format(
        "  s{0} [shape=plaintext, style=\"\", fontsize=7, fontcolor=\"{5}\", label=\"{1}\", "
        "width=0, height=0, margin=0, pos=\"{2:.2f},{3:.2f}!\"];\n"
        "  n{4} -- s{0} [style=dashed, {6}];\n",
        stubs_++, label_text(without_chip(shapes_[to].label)), x + share * (outside_x - x),
        y + share * (outside_y - y), from, neutral("faint"), style);
  }

  const BuiltTopology& built_;
  const DotOptions& options_;
  std::vector<Reach> reaches_;  // by node
  bool is_torus_ = false;
  std::uint32_t box_ = 1;           // chips
  std::size_t box_levels_ = 0;      // whole levels in a box
  std::uint32_t parts_in_box_ = 1;  // of the last level, which is divided; 1: it isn't
  bool is_thinned_ = false;
  std::vector<std::vector<bool>> elided_;  // by levels inside and number of the group
  std::vector<DrawnNode> shapes_;
  std::vector<std::size_t> shape_of_;  // by node
  std::map<std::pair<std::size_t, std::size_t>, Line> lines_;
  std::map<Bandwidth, std::string_view> colors_;
  std::string text_;
  std::size_t stubs_ = 0;
};

}  // namespace

std::string dot_of(const BuiltTopology& built, const DotOptions& options) {
  return Drawing(built, options).text();
}

std::size_t chips_per_box(const BuiltTopology& built, const DotOptions& options) {
  return Drawing(built, options).chips_per_box();
}

}  // namespace stepsim
