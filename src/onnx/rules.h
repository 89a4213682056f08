// Shape rules: one function an operator, by family.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onnx/op.h"

namespace weir::onnx {

// Sets what follows from the inputs and attributes about the outputs; what does not follow stays unknown.
// Input is untrusted: a rule holds for any ranks, sizes and attributes.
using Rule = void (*)(Op&);

class RuleTable {
 public:
  void Add(Rule rule, std::initializer_list<std::string_view> operators) {
    for (const auto name : operators) rules_[name] = rule;
  }
  // Null for operators without a rule.
  Rule Find(std::string_view name) const {
    const auto found = rules_.find(name);
    return found == rules_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, Rule> rules_;
};

void AddWindowRules(RuleTable& table);   // convolutions and pools
void AddMatrixRules(RuleTable& table);   // products of matrices, recurrent layers
void AddReshapeRules(RuleTable& table);  // the same elements in another order or shape, and shapes as values
void AddResizeRules(RuleTable& table);   // fewer or more elements along some axes

using Sizes = std::vector<int64_t>;

inline bool Known(int64_t dim) { return dim >= 0; }

// The multidirectional broadcasting of opset 7.
Dims Broadcast(const Dims& a, const Dims& b);

// Axes as an attribute (older opsets) or as input 1; empty where neither is given, absent where they are not
// known.
std::optional<Sizes> AxesOf(const Op& op);

// Which of `rank` dimensions `axes` names; absent when one lies outside.
std::optional<std::vector<bool>> Marked(const Sizes& axes, size_t rank);

}  // namespace weir::onnx
