#include "topology/topology_table.h"

#include "topology/add_kinds.h"

namespace stepsim {
namespace {

// Returns the row of a spec's kind.
template <typename Spec>
constexpr const TopologyKind<Spec>& row_of(const Spec& /*spec*/) {
  return std::get<TopologyKind<Spec>>(kTopologyKinds);
}

}  // namespace

std::optional<BlockSpec> block_named(std::string_view name) {
  std::optional<BlockSpec> found;
  std::apply(
      [&]<typename... Kinds>(const Kinds&... kinds) {
        ((kinds.name == name ? void(found = typename Kinds::Spec{}) : void()), ...);
      },
      kTopologyKinds);
  return found;
}

const FieldTable<BlockSpec>& block_fields() {
  static const FieldTable<BlockSpec> kTable = [] {
    FieldTable<BlockSpec> table("Block");
    table.one_of("a topology");
    add_kinds(
        table, [](auto& spec) -> auto& { return spec; });
    return table;
  }();
  return kTable;
}

std::string_view name_of(const BlockSpec& spec) {
  return std::visit([](const auto& block) { return row_of(block).name; }, spec);
}

std::vector<Problem> check(const BlockSpec& spec) {
  return under(name_of(spec), std::visit([](const auto& block) { return check(block); }, spec));
}

BuiltTopology build(const BlockSpec& spec) {
  return std::visit([](const auto& block) { return build(block); }, spec);
}

void fit(BlockSpec& spec, std::uint32_t gateways) {
  std::visit(
      [gateways](auto& block) {
        if (row_of(block).fit != nullptr) row_of(block).fit(block, gateways);
      },
      spec);
}

int rails_of(const BlockSpec& spec) {
  return std::visit(
      [](const auto& block) {
        return row_of(block).rails == nullptr ? 1 : row_of(block).rails(block);
      },
      spec);
}

std::string_view count_field_of(const BlockSpec& spec) {
  return std::visit([](const auto& block) { return row_of(block).count_field; }, spec);
}

HopKind inside_of(const BlockSpec& spec) {
  return std::visit([](const auto& block) { return row_of(block).inside; }, spec);
}

}  // namespace stepsim
