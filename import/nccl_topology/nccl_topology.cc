#include "import/nccl_topology/nccl_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "import/cluster_file.h"
#include "import/input_bytes.h"
#include "import/xml_file.h"
#include "proto/catalog/measured_tables.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostDevices = 4096;
constexpr Duration kChipLinkLatency{250'000};  // ps
constexpr Duration kOtherLatency{500'000};

enum class PciKind : std::uint8_t { kBridge, kGpu, kNic, kNvSwitch, kOther };

struct PciClass {
  std::string_view begin;
  PciKind kind;
};
// Classes of PCI devices, as NCCL reads them.
constexpr std::array<PciClass, 7> kPciClasses = {{{"0x0604", PciKind::kBridge},
                                                  {"0x0680", PciKind::kNvSwitch},
                                                  {"0x03", PciKind::kGpu},
                                                  {"0x12", PciKind::kGpu},
                                                  {"0x0b40", PciKind::kGpu},
                                                  {"0x02", PciKind::kNic},
                                                  {"0x06", PciKind::kBridge}}};

PciKind kind_of_class(std::string_view text) {
  for (const PciClass& known : kPciClasses) {
    if (text.starts_with(known.begin)) return known.kind;
  }
  return PciKind::kOther;
}

// What stands in a machine, before the machines are laid side by side.
struct Part {
  std::string name;  // "gpu0"
  NodeKind kind = NodeKind::kSwitch;
};
struct PartLink {
  std::string from;
  std::string to;
  Bandwidth bandwidth;
  Duration latency;
  bool one_way = false;
};
struct ListedGpu {
  pugi::xml_node pci;
  pugi::xml_node gpu;  // empty in files without
  std::string socket;
  std::string above;
  std::string name{};
};
struct Port {
  std::string card;
  Bandwidth speed;
};

class TopologyReader {
 public:
  TopologyReader(const ImportRequest& request, std::vector<Problem>& problems)
      : request_(request),
        problems_(problems),
        xml_(request.files[0], problems),
        devices_(load_hardware()),
        socket_links_(load_socket_links()) {}

  Imported read() {
    const pugi::xml_node system = xml_.root();
    if (!problems_.empty()) return {};
    if (std::string_view(system.name()) != "system") {
      xml_.refuse(system, "must begin with <system>, is <" + shortened(system.name()) + ">");
      return {};
    }
    xml_.number(system, "version", 1, 2);
    has_gpus_ = has_element(system, "gpu");
    has_nics_ = has_element(system, "nic");
    for (const pugi::xml_node cpu : system.children()) read_socket(cpu);
    if (gpus_.empty() && problems_.empty()) xml_.refuse(system, "has no GPU");
    if (!problems_.empty()) return {};
    name_gpus();
    find_chip();
    if (!problems_.empty()) return {};
    for (const ListedGpu& gpu : gpus_) read_links(gpu);
    join_sockets();
    if (!problems_.empty()) return {};
    note_assumptions();
    lay_out();
    return imported_cluster(request_, std::move(about_), graph_.spec, problems_);
  }

 private:
  static bool has_element(pugi::xml_node system, const char* name) {
    return static_cast<bool>(
        system.find_node([&](pugi::xml_node at) { return std::string_view(at.name()) == name; }));
  }

  void add(std::string name, NodeKind kind) { parts_.push_back({std::move(name), kind}); }
  void link(const std::string& from, const std::string& to, Bandwidth bandwidth, Duration latency,
            bool one_way = false) {
    links_.push_back({from, to, bandwidth, latency, one_way});
  }

  void read_socket(pugi::xml_node cpu) {
    if (std::string_view(cpu.name()) != "cpu") {
      return xml_.refuse(cpu, "must be <cpu> in <system>, is <" + shortened(cpu.name()) + ">");
    }
    const std::string name = fmt::format("socket{}", sockets_.size());
    host_ = std::string(XmlFile::text(cpu, "host_hash"));
    sockets_.push_back({name, cpu});
    add(name, NodeKind::kHost);
    for (const pugi::xml_node child : cpu.children()) read_child(child, name, name);
  }

  void read_child(pugi::xml_node node, const std::string& above, const std::string& socket) {
    const std::string_view name = node.name();
    if (problems_.size() >= kMostXmlProblems) return;
    if (name == "pci") return read_pci(node, above, socket);
    if (name == "nic") return read_card(node, {}, above);
    xml_.refuse(node, "must be <pci> or <nic>, is <" + shortened(name) + ">");
  }

  void read_pci(pugi::xml_node pci, const std::string& above, const std::string& socket) {
    if (parts_.size() > kMostDevices) return xml_.refuse(pci, "has more than 4,096 devices");
    const std::string_view id = XmlFile::text(pci, "busid");
    const bool has_gpu = static_cast<bool>(pci.child("gpu"));
    const bool has_nic = static_cast<bool>(pci.child("nic"));
    if (id.empty()) return xml_.refuse(pci, "must have a busid");
    PciKind kind = kind_of_class(XmlFile::text(pci, "class"));
    if (has_gpu) kind = PciKind::kGpu;
    if (has_nic) kind = PciKind::kNic;
    switch (kind) {
      case PciKind::kGpu:
        if (has_gpu || !has_gpus_) gpus_.push_back({pci, pci.child("gpu"), socket, above});
        if (!has_gpu && has_gpus_) ++left_out_;
        break;
      case PciKind::kNic:
        if (has_nic || !has_nics_) read_card(pci.child("nic"), pci, above);
        if (!has_nic && has_nics_) ++left_out_;
        break;
      case PciKind::kBridge:
        read_bridge(pci, above, socket);
        break;
      case PciKind::kNvSwitch:
        break;  // links name it
      case PciKind::kOther:
        if (pci.first_child()) {
          xml_.refuse(pci,
                      "class must be that of a bridge (0x0604..), a GPU (0x03.., 0x12..) or a "
                      "card (0x02..), is \"" +
                          shortened(XmlFile::text(pci, "class")) + "\"");
        } else {
          ++left_out_;
        }
    }
  }

  void read_bridge(pugi::xml_node pci, const std::string& above, const std::string& socket) {
    const std::string name = fmt::format("pcie{}", bridges_++);
    add(name, NodeKind::kSwitch);
    link(name, above, pcie(pci), kOtherLatency);
    for (const pugi::xml_node child : pci.children()) read_child(child, name, socket);
  }

  // Returns the bandwidth of the link above a device.
  Bandwidth pcie(pugi::xml_node pci) {
    const std::string_view speed = XmlFile::text(pci, "link_speed");
    const std::string_view number = speed.substr(0, speed.find(' '));
    std::int64_t width = xml_.number(pci, "link_width", 0, 64, 0);
    double transfers = number_in<double>(number).value_or(0);
    const bool is_known = std::ranges::find(kPcieSpeeds, transfers) != kPcieSpeeds.end();
    if (!is_known && !speed.empty() && small_letters_of(speed) != "unknown") {
      xml_.refuse(
          pci, "link_speed must be 2.5, 5, 8, 16, 32 or 64 GT/s, is \"" + shortened(speed) + "\"");
    }
    if (!is_known || width == 0) ++without_speed_;
    if (!is_known) transfers = 8;
    if (width == 0) width = 16;
    const double code = transfers < 8 ? 0.8 : transfers < 64 ? 128.0 / 130 : 242.0 / 256;
    return Bandwidth(transfers * 1e9 / 8 * code * static_cast<double>(width));
  }
  static std::string small_letters_of(std::string_view text) {
    std::string letters = in_small_letters(text);
    std::erase_if(letters, [](char c) { return c < 'a' || c > 'z'; });
    return letters;
  }

  // `pci` is empty for a card without one, which NCCL puts on the socket.
  void read_card(pugi::xml_node nic, pugi::xml_node pci, const std::string& above) {
    const std::string name = fmt::format("nic{}", cards_++);
    add(name, NodeKind::kNic);
    Bandwidth all;
    for (const pugi::xml_node net : nic.children()) {
      if (std::string_view(net.name()) != "net") {
        xml_.refuse(net, "must be <net> in <nic>, is <" + shortened(net.name()) + ">");
        continue;
      }
      std::int64_t speed = xml_.number(net, "speed", -1, 1'000'000'000, 0);
      if (speed <= 0) {
        speed = 10'000;  // as NCCL takes it
        ++without_port_speed_;
      }
      ports_.push_back({name, Bandwidth(static_cast<double>(speed) * 1e6 / 8)});
      all = all + ports_.back().speed;
    }
    if (!nic) {
      ports_.push_back({name, pcie(pci)});
      ++without_port_speed_;
    }
    if (pci) return link(name, above, pcie(pci), kOtherLatency);
    link(name, above, all > Bandwidth(0) ? all : Bandwidth(1.25e9), kOtherLatency);
  }

  // Numbers the GPUs by their ranks, or else their devices, or else as they stand.
  void name_gpus() {
    const auto sort_by = [&](const char* attribute) {
      std::set<std::int64_t> numbers;
      for (const ListedGpu& gpu : gpus_) {
        if (XmlFile::text(gpu.gpu, attribute).empty()) return false;
        numbers.insert(xml_.number(gpu.gpu, attribute, -1, 1 << 24));
      }
      if (numbers.size() != gpus_.size() || *numbers.begin() < 0) return false;
      std::ranges::stable_sort(gpus_, {}, [&](const ListedGpu& gpu) {
        return xml_.number(gpu.gpu, attribute, -1, 1 << 24);
      });
      return true;
    };
    if (!sort_by("rank")) sort_by("dev");
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      ListedGpu& gpu = gpus_[i];
      gpu.name = fmt::format("gpu{}", i);
      const std::string id = in_small_letters(XmlFile::text(gpu.pci, "busid"));
      if (!gpu_of_bus_.emplace(id, gpu.name).second && host_.empty()) {
        xml_.refuse(gpu.pci, "busid " + shortened(id) + " is given twice");
      }
      add(gpu.name, NodeKind::kChip);
    }
  }

  // "10de:2330"; empty if the file does not say.
  static std::string device_of(pugi::xml_node pci) {
    const std::string vendor = in_small_letters(XmlFile::text(pci, "vendor"));
    const std::string device = in_small_letters(XmlFile::text(pci, "device"));
    if (!vendor.starts_with("0x") || !device.starts_with("0x")) return {};
    return vendor.substr(2) + ":" + device.substr(2);
  }
  static std::string architecture_of(pugi::xml_node gpu) {
    const std::string_view gcn = XmlFile::text(gpu, "gcn");
    if (!gcn.empty()) return std::string(gcn);
    const std::string_view sm = XmlFile::text(gpu, "sm");
    return sm.empty() ? "" : "sm " + std::string(sm);
  }

  void find_chip() {
    const std::string device = device_of(gpus_[0].pci);
    const std::string architecture = architecture_of(gpus_[0].gpu);
    for (const ListedGpu& gpu : gpus_) {
      if (device_of(gpu.pci) == device && architecture_of(gpu.gpu) == architecture) continue;
      return xml_.refuse(gpu.pci, "GPUs must be alike: " + said(gpu) + " beside " + said(gpus_[0]));
    }
    const Hardware* found = find_device(devices_, device, architecture);
    if (!request_.chip.empty()) {
      const auto given = std::ranges::find(devices_, request_.chip, &Hardware::chip);
      found = given == devices_.end() ? nullptr : &*given;
    } else if (found == nullptr) {
      return xml_.refuse(gpus_[0].pci, "must be a GPU of the catalog, is " + said(gpus_[0]) +
                                           "; --chip C says which stands for it");
    } else {
      about_.chip = found->chip;
      const bool is_device =
          std::ranges::find(found->pci_devices, device) != found->pci_devices.end();
      if (!is_device) {
        about_.assumed.push_back(
            fmt::format("chip {} for {}, which other chips have too; --chip C gives another",
                        about_.chip, said(gpus_[0])));
      }
    }
    if (found != nullptr) chip_link_ = found->link_bandwidth;
  }
  static std::string said(const ListedGpu& gpu) {
    const std::string device = device_of(gpu.pci);
    const std::string architecture = architecture_of(gpu.gpu);
    const std::string text = device.empty() ? architecture : device + " " + architecture;
    return text.empty() ? "a GPU without device, sm and gcn" : shortened(text);
  }

  void read_links(const ListedGpu& gpu) {
    link(gpu.name, gpu.above, pcie(gpu.pci), kOtherLatency);
    for (const pugi::xml_node child : gpu.gpu.children()) {
      const std::string_view name = child.name();
      if (name == "nvlink" || name == "xgmi") {
        read_chip_link(gpu, child);
      } else if (name == "c2c") {
        const std::int64_t count = xml_.number(child, "count", 1, 1024, 1);
        const std::int64_t speed = xml_.number(child, "bw", 1, 100'000'000);
        link(gpu.name, gpu.socket, Bandwidth(static_cast<double>(count * speed) * 1e6),
             kChipLinkLatency);
      } else {
        xml_.refuse(child,
                    "must be <nvlink>, <xgmi> or <c2c> in <gpu>, is <" + shortened(name) + ">");
      }
    }
  }

  void read_chip_link(const ListedGpu& gpu, pugi::xml_node node) {
    const std::int64_t count = xml_.number(node, "count", 1, 1024);
    if (!(chip_link_ > Bandwidth(0))) {
      return xml_.refuse(node, "the catalog doesn't know how fast such a link of " +
                                   (request_.chip.empty() ? about_.chip : request_.chip) +
                                   " is (catalog/hardware/aliases.textproto)");
    }
    const Bandwidth all = static_cast<double>(count) * chip_link_;
    const std::string_view target_class = XmlFile::text(node, "tclass");
    const auto target = gpu_of_bus_.find(in_small_letters(XmlFile::text(node, "target")));
    chip_links_ += count;
    if (target != gpu_of_bus_.end()) {
      link(gpu.name, target->second, all, kChipLinkLatency, true);
    } else if (target_class.starts_with("0x068001")) {
      link(gpu.name, gpu.socket, all, kChipLinkLatency);
    } else if (kind_of_class(target_class) == PciKind::kNvSwitch) {
      link(gpu.name, "nvswitch", all, kChipLinkLatency);
      has_nvswitch_ = true;
    } else if (kind_of_class(target_class) == PciKind::kGpu) {
      ++lost_links_;  // to a GPU that is not in the file
    } else {
      xml_.refuse(node,
                  "tclass must be that of a GPU (0x03.., 0x12..), an NVSwitch (0x068000) or a "
                  "processor (0x068001), is \"" +
                      shortened(target_class) + "\"");
    }
  }

  void join_sockets() {
    if (has_nvswitch_) add("nvswitch", NodeKind::kSwitch);
    std::optional<Bandwidth> taken;
    for (std::size_t a = 0; a < sockets_.size(); ++a) {
      const Bandwidth out =
          sockets_.size() > 1 ? socket_bandwidth(sockets_[a].second) : Bandwidth(0);
      for (std::size_t b = 0; b < sockets_.size(); ++b) {
        if (a == b) continue;
        link(sockets_[a].first, sockets_[b].first, out, kOtherLatency, true);
        taken = out;
      }
    }
    if (taken && problems_.empty()) {
      about_.assumed.push_back("sockets are joined by " + to_text(*taken) +
                               " each, which NCCL takes for such processors");
    }
  }

  Bandwidth socket_bandwidth(pugi::xml_node cpu) {
    const std::string_view arch = XmlFile::text(cpu, "arch");
    const std::string_view vendor = XmlFile::text(cpu, "vendor");
    const std::int64_t model = xml_.number(cpu, "modelid", 0, 1 << 20, 0);
    for (const SocketLink& known : socket_links_) {
      const bool fits = known.arch == arch && (known.vendor.empty() || known.vendor == vendor);
      if (fits && model >= known.first_model) return known.bandwidth;
    }
    xml_.refuse(cpu, "arch must be x86_64, ppc64 or arm64, is \"" + shortened(arch) + "\"");
    return {};
  }

  void note_assumptions() {
    const auto assume = [&](std::size_t count, const char* text) {
      if (count > 0) about_.assumed.push_back(fmt::format("{}{}", count, text));
    };
    assume(without_speed_, " PCIe links without speed or width have 8 GT/s x16, as NCCL takes it");
    assume(without_port_speed_,
           " ports without a speed have that of their PCIe link, or 10 Gbit/s "
           "where the card is named");
    if (chip_links_ > 0) {
      about_.assumed.push_back(fmt::format(
          "each NVLink or xGMI link has {} one way, that of the chip", to_text(chip_link_)));
    }
    if (!has_gpus_) {
      about_.assumed.emplace_back(
          "there are no NVLinks: the file names no <gpu>, and NCCL asks the "
          "driver for them");
    }
    about_.assumed.emplace_back("latencies: 0.25us of NVLink and xGMI, 0.5us of all other links");
    if (left_out_ > 0) {
      about_.no_counterpart.push_back(fmt::format(
          "{} devices without <gpu> or <nic>, or of other classes: NCCL leaves them out",
          left_out_));
    }
    if (lost_links_ > 0) {
      about_.no_counterpart.push_back(fmt::format(
          "links to {} GPUs that the file doesn't have: NCCL leaves them out", lost_links_));
    }
  }

  // Lays the machines side by side and joins ports of the same number.
  void lay_out() {
    const std::size_t chips = gpus_.size();
    if (request_.ranks % chips != 0) {
      return problems_.push_back({"--ranks", fmt::format("must be a multiple of the {} GPUs, is {}",
                                                         chips, request_.ranks)});
    }
    const std::size_t machines = request_.ranks == 0 ? 1 : request_.ranks / chips;
    if (machines > 1 && ports_.empty()) {
      return problems_.push_back({"--ranks", "machines can't be joined: the file has no card"});
    }
    // The router takes the first of equal paths: links of chips come before PCIe.
    std::ranges::stable_sort(links_, {}, [](const PartLink& one) { return one.latency; });
    for (std::size_t machine = 0; machine < machines; ++machine) {
      const std::string prefix = machines == 1 ? "" : fmt::format("node{}.", machine);
      for (const NodeKind kind :
           {NodeKind::kChip, NodeKind::kSwitch, NodeKind::kHost, NodeKind::kNic}) {
        for (const Part& part : parts_) {
          if (part.kind == kind) graph_.node(prefix + part.name, kind);
        }
      }
      for (const PartLink& one : links_) {
        if (one.one_way) {
          graph_.one_way(prefix + one.from, prefix + one.to, one.bandwidth, one.latency);
        } else {
          graph_.cable(prefix + one.from, prefix + one.to, one.bandwidth, one.latency);
        }
      }
      for (std::size_t port = 0; port < ports_.size() && machines > 1; ++port) {
        graph_.cable(prefix + ports_[port].card, fmt::format("network{}", port), ports_[port].speed,
                     kOtherLatency);
      }
    }
    graph_.spec.levels = {{"gpu", static_cast<int>(chips), LevelMembers::kChip}};
    if (machines == 1) return note_ports();
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      graph_.node(fmt::format("network{}", port), NodeKind::kSwitch);
    }
    graph_.spec.levels.push_back({"node", static_cast<int>(machines), LevelMembers::kNode});
    about_.assumed.emplace_back(
        "ports of the same number of all machines meet in one switch: the file does not say how "
        "they are cabled");
  }

  void note_ports() {
    std::map<double, std::size_t> ports;
    for (const Port& port : ports_) ++ports[port.speed.value()];
    for (const auto& [speed, count] : ports) {
      about_.no_counterpart.push_back(
          fmt::format("{} ports of {}: a machine alone has no network; --ranks N joins several",
                      count, to_text(Bandwidth(speed))));
    }
  }

  static constexpr std::array<double, 6> kPcieSpeeds = {2.5, 5, 8, 16, 32, 64};

  const ImportRequest& request_;
  std::vector<Problem>& problems_;
  XmlFile xml_;
  const std::vector<Hardware> devices_;
  const std::vector<SocketLink> socket_links_;
  bool has_gpus_ = false;
  bool has_nics_ = false;
  bool has_nvswitch_ = false;
  std::string host_;
  std::vector<std::pair<std::string, pugi::xml_node>> sockets_;
  std::vector<ListedGpu> gpus_;
  std::map<std::string, std::string> gpu_of_bus_;
  std::vector<Part> parts_;
  std::vector<PartLink> links_;
  std::vector<Port> ports_;
  std::size_t bridges_ = 0;
  std::size_t cards_ = 0;
  std::int64_t chip_links_ = 0;
  std::size_t left_out_ = 0;
  std::size_t lost_links_ = 0;
  std::size_t without_speed_ = 0;
  std::size_t without_port_speed_ = 0;
  Bandwidth chip_link_{};
  GraphMaker graph_;
  ClusterAbout about_;
};

}  // namespace

Imported import_nccl_topology(const ImportRequest& request) {
  std::vector<Problem> problems;
  Imported imported = TopologyReader(request, problems).read();
  throw_if_any(std::move(problems));
  return imported;
}

}  // namespace stepsim
