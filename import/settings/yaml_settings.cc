#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <utility>

#include "import/settings/settings_files.h"

namespace stepsim {
namespace {

// Thrown by the handler, which is the only way to stop yaml-cpp's parser.
struct YamlStop {
  std::size_t line = 0;
  std::string problem;
};

// A node of the tree that the events describe. Its children are in order; those of a list have no
// names.
struct YamlNode {
  std::string name{};
  Json value{};  // of a scalar
  std::size_t line = 0;
  bool is_group = false;
  bool is_list = false;
  std::vector<YamlNode> children{};
};

// Builds the tree of one document. Aliases copy what they name, as long as the whole has at most
// kMostSettings nodes.
class YamlTree : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    take(mark, anchor, {.value = nullptr, .line = line_of(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw YamlStop{line_of(mark), "an alias of something that contains it"};
    }
    YamlNode copy = found->second;
    count(mark, size_of_node(copy) - 1);
    take(mark, 0, std::move(copy));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (wants_name() && tag != "!") {
      // Names of flags may look like nulls or numbers.
      name_scalar(mark, value);
      return;
    }
    const bool is_null = tag == "?" && (value == "null" || value == "~" || value == "Null" ||
                                        value == "NULL" || value.empty());
    take(mark, anchor, {.value = is_null ? Json() : Json(value), .line = line_of(mark)});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, true);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, false);
  }
  void OnMapEnd() override { close(); }

  YamlNode& root() { return root_; }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_name = false;  // of the next member of a group
    std::string name{};
    std::size_t name_line = 0;
  };

  static std::size_t line_of(const YAML::Mark& mark) {
    return static_cast<std::size_t>(mark.line < 0 ? 0 : mark.line) + 1;
  }

  static std::size_t size_of_node(const YamlNode& node) {
    std::size_t size = 1;
    for (const YamlNode& child : node.children) size += size_of_node(child);
    return size;
  }

  void count(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMostSettings) {
      throw YamlStop{line_of(mark),
                     fmt::format("has more than {} settings, with its aliases", kMostSettings)};
    }
  }

  bool wants_name() const {
    return !open_.empty() && !open_.back().node.is_list && !open_.back().has_name;
  }

  void name_scalar(const YAML::Mark& mark, const std::string& name) {
    open_.back().has_name = true;
    open_.back().name = name;
    open_.back().name_line = line_of(mark);
  }

  void take(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode node) {
    count(mark, 1);
    if (wants_name()) {
      if (node.is_group) throw YamlStop{line_of(mark), "a key must be a text"};
      name_scalar(mark, node.value.is_string() ? node.value.get<std::string>() : "null");
      return;
    }
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& group = open_.back();
    if (!group.node.is_list) {
      node.name = std::move(group.name);
      node.line = group.name_line;
      group.has_name = false;
    }
    group.node.children.push_back(std::move(node));
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_list) {
    if (wants_name()) throw YamlStop{line_of(mark), "a key must be a text"};
    if (open_.size() >= kMostSettingDepth) {
      throw YamlStop{line_of(mark), fmt::format("is nested more than {} deep", kMostSettingDepth)};
    }
    open_.push_back(
        {.node = {.line = line_of(mark), .is_group = true, .is_list = is_list}, .anchor = anchor});
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    take(YAML::Mark(), closed.anchor, std::move(closed.node));
  }

  YamlNode root_{};
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t nodes_ = 0;
};

// Hands a tree to the builder.
class YamlSettings {
 public:
  explicit YamlSettings(SettingsBuilder& builder) : builder_(&builder) {}

  void add(const YamlNode& node, const std::string& name, bool if_absent) {
    if (!node.is_group) {
      builder_->add(name, node.value, node.line, if_absent);
    } else if (node.is_list && has_scalars_only(node)) {
      Json list = Json::array();
      for (const YamlNode& child : node.children) list.push_back(child.value);
      builder_->add(name, std::move(list), node.line, if_absent);
    } else if (name == "<<") {
      for (const YamlNode& child : node.children) {
        if (node.is_list) {
          add_members(child, true);
        } else {
          add(child, child.name, true);
        }
      }
    } else if (builder_->open(name)) {
      add_members(node, if_absent);
      builder_->close();
    }
  }

  void add_members(const YamlNode& node, bool if_absent) {
    // What is merged gives way to what the group itself says.
    for (const bool merged : {false, true}) {
      std::size_t index = 0;
      for (const YamlNode& child : node.children) {
        const std::string name = node.is_list ? std::to_string(index++) : child.name;
        if ((name == "<<") == merged) add(child, name, if_absent);
      }
    }
  }

 private:
  static bool has_scalars_only(const YamlNode& list) {
    for (const YamlNode& child : list.children) {
      if (child.is_group) return false;
    }
    return true;
  }

  SettingsBuilder* builder_;
};

}  // namespace

void read_yaml_settings(std::string_view text, const std::string& file, Settings& settings,
                        std::vector<Problem>& problems) {
  YamlTree tree;
  const auto fail = [&](std::size_t line, const std::string& message) {
    problems.push_back({fmt::format("{}:{}", file, line), message});
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(tree);
  } catch (const YamlStop& stop) {
    return fail(stop.line, stop.problem);
  } catch (const YAML::Exception& error) {
    return fail(static_cast<std::size_t>(error.mark.line < 0 ? 0 : error.mark.line) + 1,
                "is no YAML: " + error.msg);
  }
  if (!tree.root().is_group || tree.root().is_list) {
    return fail(1, "must have keys and values, as in tensor_parallel: 8");
  }
  SettingsBuilder builder(settings, file);
  YamlSettings(builder).add_members(tree.root(), false);
  if (!builder.problem().empty()) problems.push_back({file, builder.problem()});
}

}  // namespace stepsim
