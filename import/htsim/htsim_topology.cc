#include "import/htsim/htsim_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "import/cluster_file.h"
#include "import/input_bytes.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostHtsimHosts = 1 << 20;
constexpr std::int64_t kMostHtsimLinks = 1 << 23;

// A number of a tier; unset: not given.
enum TierKey : std::uint8_t {
  kSpeed,
  kRadixUp,
  kRadixDown,
  kQueueUp,
  kQueueDown,
  kOversubscribed,
  kBundle,
  kSwitchLatency,
  kLinkLatency,
  kTierKeys
};
struct HtsimKey {
  std::string_view name;
  std::int64_t low;
  std::int64_t high;
};
constexpr std::array<HtsimKey, kTierKeys> kHtsimKeys = {
    {{"downlink_speed_gbps", 1, 100'000},
     {"radix_up", 1, 1 << 20},
     {"radix_down", 1, 1 << 20},
     {"queue_up", 1, 1LL << 40},
     {"queue_down", 1, 1LL << 40},
     {"oversubscribed", 1, 1 << 20},
     {"bundle", 1, 1 << 20},
     {"switch_latency_ns", 0, 1'000'000'000},
     {"downlink_latency_ns", 1, 1'000'000'000}}};

class HtsimReader {
 public:
  HtsimReader(const ImportRequest& request, std::vector<Problem>& problems)
      : request_(request), path_(short_name(request.files[0])), problems_(problems) {}

  Imported read(std::string_view text) {
    std::size_t number = 0;
    for (const std::string_view line : split_text(text, '\n')) {
      place_ = fmt::format("{}:{}", path_, ++number);
      read_line(words_of(line));
      if (problems_.size() > 20) return {};
    }
    place_ = path_;
    check_given();
    if (problems_.empty()) check_numbers();
    if (!problems_.empty()) return {};
    build();
    about_.assumed.emplace_back(
        "switches choose among equal paths by the destination (routing: destination); htsim's "
        "strategy is a flag of its command line");
    graph_.spec.routing = PathRule::kDestination;
    return imported_cluster(request_, std::move(about_), graph_.spec, problems_);
  }

 private:
  void refuse(std::string message) { problems_.push_back({place_, std::move(message)}); }

  void read_line(const std::vector<std::string_view>& words) {
    if (words.empty() || words[0].front() == '#') return;
    const std::string key = in_small_letters(words[0]);
    if (words.size() < 2) return refuse(shortened(key) + " must have a number behind it");
    const auto value = [&](std::int64_t low, std::int64_t high) {
      return number_between(words[1], low, high, place_, shortened(key), problems_);
    };
    const auto* const known = std::ranges::find(kHtsimKeys, key, &HtsimKey::name);
    if (key == "tier") {
      tier_ = static_cast<int>(value(0, 2));
    } else if (known != kHtsimKeys.end() && tier_ >= 0) {
      auto& slot = given_[static_cast<std::size_t>(tier_)]
                         [static_cast<std::size_t>(known - kHtsimKeys.begin())];
      if (slot) refuse(fmt::format("{} of tier {} is given twice", key, tier_));
      slot = value(known->low, known->high);
    } else if (tier_ < 0 && (key == "nodes" || key == "podsize")) {
      (key == "nodes" ? hosts_ : pod_) = value(1, kMostHtsimHosts);
    } else if (tier_ < 0 && key == "tiers") {
      tiers_ = static_cast<std::size_t>(value(2, 3));
    } else {
      about_.no_counterpart.push_back(shortened(key) + ": htsim skips it too");
    }
  }

  // Returns a number of a tier, or what htsim takes without it.
  std::int64_t of(std::size_t tier, TierKey key) const {
    return given_[tier][key].value_or(key == kSwitchLatency ? 0 : 1);
  }

  void check_given() {
    if (hosts_ == 0) refuse("Nodes must be given");
    if (pod_ == 0) refuse("Podsize must be given");
    if (tiers_ == 0) return refuse("Tiers must be given, 2 or 3");
    for (std::size_t tier = 0; tier < tiers_; ++tier) {
      for (const TierKey key : {kSpeed, kRadixUp, kRadixDown, kLinkLatency}) {
        const bool is_needed = key != kRadixUp || tier + 1 < tiers_;
        if (is_needed && !given_[tier][key]) {
          refuse(fmt::format("{} of tier {} must be given", kHtsimKeys[key].name, tier));
        }
      }
      if (given_[tier][kQueueUp] || given_[tier][kQueueDown]) {
        about_.no_counterpart.push_back(fmt::format("queue sizes of tier {}", tier));
      }
    }
    if (given_[tiers_ - 1][kRadixUp]) refuse("radix_up must not be given of the top tier");
  }

  void check_numbers() {
    const auto must = [&](bool holds, std::string message) {
      if (!holds) refuse(std::move(message));
    };
    must(hosts_ % pod_ == 0, fmt::format("Podsize must divide Nodes, {}, is {}", hosts_, pod_));
    must(pod_ % of(0, kRadixDown) == 0,
         fmt::format("radix_down of tier 0 must divide Podsize, {}, is {}", pod_,
                     of(0, kRadixDown)));
    must(of(0, kRadixDown) / of(0, kRadixUp) == of(0, kOversubscribed),
         fmt::format("oversubscribed of tier 0 must be radix_down / radix_up, {}, is {}",
                     of(0, kRadixDown) / of(0, kRadixUp), of(0, kOversubscribed)));
    if (!problems_.empty()) return;
    pods_ = hosts_ / pod_;
    leaves_ = pod_ / of(0, kRadixDown);
    const std::int64_t uplinks =
        whole(hosts_ * of(0, kSpeed), of(1, kSpeed) * of(0, kOversubscribed),
              "hosts x speeds of tiers 0 and 1");
    spines_ =
        whole(uplinks, pods_ * of(1, kRadixDown), "uplinks of leaves by radix_down of tier 1");
    must(spines_ * of(1, kBundle) == of(0, kRadixUp),
         fmt::format(
             "radix_up of tier 0 must be the {} spines of a pod x bundle of tier 1, {}, is {}",
             spines_, of(1, kBundle), of(0, kRadixUp)));
    if (tiers_ == 2 || !problems_.empty()) return;
    const std::int64_t above =
        whole(uplinks * of(1, kSpeed), of(2, kSpeed) * of(1, kOversubscribed),
              "uplinks x speeds of tiers 1 and 2");
    cores_ = whole(above, of(2, kRadixDown), "uplinks of spines by radix_down of tier 2");
    must(spines_ > 0 && cores_ % spines_ == 0 &&
             cores_ / spines_ * of(2, kBundle) == of(1, kRadixUp),
         fmt::format("radix_up of tier 1 must be {} cores x bundle of tier 2, {}, / {} spines of a "
                     "pod, is {}",
                     cores_, of(2, kBundle), spines_, of(1, kRadixUp)));
  }

  std::int64_t whole(std::int64_t a, std::int64_t b, const char* what) {
    if (b > 0 && a % b == 0 && a >= b) return a / b;
    refuse(fmt::format("{} must be a whole number, is {} / {}", what, a, b));
    return 1;
  }

  void build() {
    const std::int64_t links = hosts_ + pods_ * leaves_ * spines_ * (tiers_ == 2 ? pods_ : 1) +
                               (tiers_ == 3 ? pods_ * spines_ * (cores_ / spines_) : 0);
    if (links > kMostHtsimLinks) return refuse("has more than 8 million links");
    for (std::int64_t host = 0; host < hosts_; ++host) {
      graph_.node(fmt::format("host{}", host), NodeKind::kChip);
    }
    add_switches("leaf", pods_ * leaves_);
    add_switches("spine", pods_ * spines_);
    add_switches("core", cores_);
    for (std::int64_t host = 0; host < hosts_; ++host) {
      cable(0, fmt::format("host{}", host), fmt::format("leaf{}", host / of(0, kRadixDown)), false);
    }
    for (std::int64_t leaf = 0; leaf < pods_ * leaves_; ++leaf) {
      const std::int64_t first = tiers_ == 3 ? leaf / leaves_ * spines_ : 0;
      const std::int64_t count = tiers_ == 3 ? spines_ : pods_ * spines_;
      for (std::int64_t spine = first; spine < first + count; ++spine) {
        cable(1, fmt::format("leaf{}", leaf), fmt::format("spine{}", spine), true);
      }
    }
    for (std::int64_t spine = 0; spine < pods_ * spines_ && cores_ > 0; ++spine) {
      for (std::int64_t core = spine % spines_; core < cores_; core += spines_) {
        cable(2, fmt::format("spine{}", spine), fmt::format("core{}", core), true);
      }
    }
    add_levels();
  }

  void add_switches(const char* name, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      graph_.node(fmt::format("{}{}", name, i), NodeKind::kSwitch);
    }
  }

  // A cable of a tier, up to a switch of that tier.
  void cable(std::size_t tier, const std::string& below, const std::string& above,
             bool is_between_switches) {
    const Bandwidth speed(static_cast<double>(of(tier, kSpeed) * of(tier, kBundle)) * 1e9 / 8);
    const auto latency = [&](std::int64_t into) {
      return Duration(1000) * (of(tier, kLinkLatency) + into);
    };
    const std::int64_t up = of(tier, kSwitchLatency);
    const std::int64_t down = is_between_switches ? of(tier - 1, kSwitchLatency) : 0;
    if (up == down) return graph_.cable(below, above, speed, latency(up));
    graph_.one_way(below, above, speed, latency(up));
    graph_.one_way(above, below, speed, latency(down));
  }

  // Each host is a node.
  void add_levels() {
    const auto level = [&](const char* name, std::int64_t size, LevelMembers kind) {
      graph_.spec.levels.push_back({name, static_cast<int>(size), kind});
    };
    level("host", of(0, kRadixDown), LevelMembers::kNode);
    level("leaf", tiers_ == 3 ? leaves_ : leaves_ * pods_, LevelMembers::kLeaf);
    if (tiers_ == 3) level("pod", pods_, LevelMembers::kPod);
  }

  const ImportRequest& request_;
  const std::string path_;
  std::vector<Problem>& problems_;
  std::string place_;
  std::int64_t hosts_ = 0;
  std::int64_t pod_ = 0;  // hosts
  std::size_t tiers_ = 0;
  int tier_ = -1;  // -1: the header
  std::array<std::array<std::optional<std::int64_t>, kTierKeys>, 3> given_{};
  std::int64_t pods_ = 0;
  std::int64_t leaves_ = 0;  // of a pod
  std::int64_t spines_ = 0;  // of a pod
  std::int64_t cores_ = 0;
  GraphMaker graph_;
  ClusterAbout about_;
};

}  // namespace

Imported import_htsim_topology(const ImportRequest& request) {
  return read_network<HtsimReader>(request, InputKind::kText);
}

}  // namespace stepsim
