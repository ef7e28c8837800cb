// The row `slurm-topology` of stepsim import: topology.conf of Slurm (its man page, topology/tree
// and topology/block): which nodes are below which switches, or in which blocks.
//
//   SwitchName=leaf1 Nodes=gpu[001-004]          a leaf and its nodes
//   SwitchName=spine Switches=leaf[1-2]          a switch above others
//   BlockName=rack1 Nodes=gpu[01-18]             nodes on a fast fabric, such as NVLink
//
// The file has names alone. What a node has, its chips, NVLink and cards, is that of the nodes of
// --cluster (dgx-h100-16 for switches, gb200-nvl72-144 for blocks, assumed); --ranks says how many
// chips there are in all. Every card leads to the node's leaf, and a switch has as much bandwidth
// up as down, shared by the switches above it (routing: destination): assumed. Blocks are NVLink
// domains whose cards meet in one switch. Chips are numbered node by node, in the order of the
// file.
//
// Not modelled: LinkSpeed, which Slurm does not use either; nodes below two leaves, trees without a
// common switch, which are refused; topology.yaml.

#pragma once

#include "import/importer.h"

namespace stepsim {

Imported import_slurm_topology(const ImportRequest& request);

}  // namespace stepsim
