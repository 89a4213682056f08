// How deep a Net is, and how many repeated blocks it is made of.
#pragma once

#include <cstdint>
#include <optional>

#include "onnx/net.h"

namespace weir::onnx {

struct Structure {
  std::optional<int64_t> depth;
  std::optional<int64_t> inner_modules;
};

// Depth: weight layers on the longest path from an input to any value.
//
// Inner modules: the places where branches of one origin, at least one of them with a weight layer in it,
// meet again in an addition or a concatenation: residual blocks, dense layers, Inception and fire modules,
// shuffle units. Three refinements:
//   - a join that only feeds another join, with no weight layer between, is a part of that one (Inception's
//   inner concatenations);
//   - a depthwise convolution outside all modules is one itself, with the pointwise ones around it: MobileNet
//   v1, and the blocks of
//     v2 that change size and have no shortcut;
//   - where the modules repeat with a period of two or three kinds (attention and feed-forward), one period
//   is one module, so that
//     a transformer's blocks are counted as its authors do.
// Absent when weight layers stand inside loops or branches, or the graph is too large to follow.
Structure StructureOf(Net& net);

}  // namespace weir::onnx
