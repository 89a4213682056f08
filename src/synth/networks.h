// The networks that can be made, without their last layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/seed.h"
#include "dataset/recipe.h"
#include "synth/graph.h"

namespace weir::synth {

// "tiny", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152": what MakeModel fits; identity is not
// one of them.
const std::vector<std::string>& NetworkNames();

struct Network {
  GraphWriter graph;    // input "input" [N, 3, side, side]; no output is declared yet
  Activation features;  // [N, channels]: what the last layer reads
};

// The shape the network reads.
dataset::Size InputSize(std::string_view name);

// REQUIRES: `name` is one of NetworkNames().
Network BuildNetwork(const std::string& name, Seed seed);

}  // namespace weir::synth
