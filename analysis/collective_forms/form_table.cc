#include "analysis/collective_forms/form_table.h"

#include <array>

#include "analysis/collective_forms/formula_parts.h"

namespace stepsim {
namespace {

std::optional<CollectiveFormula> counted_only(const CollectiveFormulaInput&) {
  return std::nullopt;
}

constexpr std::array<FormRow, kAlgorithmCount - 1> kForms = {{
    {AlgorithmChoice::kRing, flat_rings},
    {AlgorithmChoice::kBidirectionalRing, flat_rings},
    {AlgorithmChoice::kHierarchical, hierarchical},
    {AlgorithmChoice::kMultiAxis, torus_rings},
    {AlgorithmChoice::kAxisAfterAxis, torus_rings},
    {AlgorithmChoice::kDirect, direct},
    {AlgorithmChoice::kPairwise, pairwise},
    {AlgorithmChoice::kTorusAllToAll, torus_all_to_all},
    {AlgorithmChoice::kRootTrees, root_trees},
    {AlgorithmChoice::kBinomialTree, binomial_tree},
    {AlgorithmChoice::kChain, chain},
    {AlgorithmChoice::kDoubleBinaryTree, double_binary_tree},
    {AlgorithmChoice::kHalvingDoubling, halving_doubling},
    {AlgorithmChoice::kRecursiveDoubling, halving_doubling},
    {AlgorithmChoice::kBruck, bruck},
    {AlgorithmChoice::kReduceBroadcast, reduce_broadcast},
    {AlgorithmChoice::kDissemination, dissemination},
    {AlgorithmChoice::kRotatedRings, rotated_rings},
    {AlgorithmChoice::kOverlappedLevels, overlapped_levels},
    {AlgorithmChoice::kPxn, node_relay},
    {AlgorithmChoice::kNodeForwarding, node_relay},
    {AlgorithmChoice::kNvls, in_network},
    {AlgorithmChoice::kSharp, in_network},
    {AlgorithmChoice::kNvlsTree, in_network},
    {AlgorithmChoice::kPackedTrees, packed_trees},
    {AlgorithmChoice::kCustom, counted_only},
}};

constexpr bool in_order_of_the_enumerators() {
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    if (kForms[i].algorithm != kAlgorithmChoices[i + 1]) return false;
  }
  return true;
}
static_assert(in_order_of_the_enumerators(), "a row for each enumerator, in their order");

}  // namespace

std::span<const FormRow> form_table() {
  return kForms;
}

}  // namespace stepsim
