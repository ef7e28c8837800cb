// The documents that stepsim is measured against, as formulas and studies name them.

#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace stepsim {

inline constexpr std::string_view kBookTraining =
    "How to Scale Your Model, part 5 (How to Parallelize a Transformer for Training)";
inline constexpr std::string_view kBookRoofline =
    "How to Scale Your Model, part 1 (All About Rooflines)";
inline constexpr std::string_view kBookTpus =
    "How to Scale Your Model, part 2 (How to Think About TPUs)";
inline constexpr std::string_view kBookSharding =
    "How to Scale Your Model, part 3 (Sharded Matrices and How to Multiply Them)";
inline constexpr std::string_view kBookTransformers =
    "How to Scale Your Model, part 4 (All the Transformer Math You Need to Know)";
inline constexpr std::string_view kBookAppliedTraining =
    "How to Scale Your Model, part 6 (Training LLaMA 3 on TPUs)";
inline constexpr std::string_view kBookInference =
    "How to Scale Your Model, part 7 (All About Transformer Inference)";
inline constexpr std::string_view kBookAppliedInference =
    "How to Scale Your Model, part 8 (Serving LLaMA 3-70B on TPUs)";
inline constexpr std::string_view kBookGpus =
    "How to Scale Your Model, part 12 (How to Think About GPUs)";
inline constexpr std::string_view kLecture7 = "Stanford CS336, lecture 7 (parallelism)";
inline constexpr std::string_view kLecture8 = "Stanford CS336, lecture 8 (parallelism)";
inline constexpr std::string_view kLectures78 = "Stanford CS336, lectures 7 and 8 (parallelism)";
inline constexpr std::string_view kKorthikanti =
    "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models (arXiv "
    "2205.05198)";

inline constexpr std::string_view kDaly =
    "Daly, A higher order estimate of the optimum checkpoint interval (FGCS 2006), equations 13, "
    "20 "
    "and 37";
inline constexpr std::string_view kYoung =
    "Young, A first order approximation to the optimum checkpoint interval (CACM 1974)";
inline constexpr std::string_view kErlang =
    "Erlang (1917): birth and death of broken nodes, as many repairs at once as there are";

// The names by which files of catalog/formulas refer to them: source = "@lecture8".
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kDocuments{
    {{"book_training", kBookTraining},
     {"book_roofline", kBookRoofline},
     {"book_tpus", kBookTpus},
     {"book_sharding", kBookSharding},
     {"book_transformers", kBookTransformers},
     {"book_applied_training", kBookAppliedTraining},
     {"book_inference", kBookInference},
     {"book_applied_inference", kBookAppliedInference},
     {"book_gpus", kBookGpus},
     {"lecture7", kLecture7},
     {"lecture8", kLecture8},
     {"lectures7_8", kLectures78},
     {"korthikanti", kKorthikanti},
     {"daly", kDaly},
     {"young", kYoung},
     {"erlang", kErlang}}};

}  // namespace stepsim
