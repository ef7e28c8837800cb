#include "books/collective_forms/form_table.h"

#include <algorithm>
#include <array>

#include "books/collective_forms/formula_parts.h"

namespace stepsim {
namespace {

constexpr auto kForms = std::to_array<FormRow>({
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
});

}  // namespace

std::span<const FormRow> form_table() {
  return kForms;
}

CollectiveForm form_of(AlgorithmChoice algorithm) {
  const auto* const row = std::ranges::find(kForms, algorithm, &FormRow::algorithm);
  return row == kForms.end() ? nullptr : row->form;
}

}  // namespace stepsim
