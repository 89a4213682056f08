#include "synth/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::synth {
namespace {

enum class Block { kBasic, kBottleneck };

// ResNet as He et al. 2015 (arXiv:1512.03385, table 1) have it, in the form called v1.5: the stride of a
// bottleneck is on its 3x3 convolution. Every convolution's bias stands for the batch norm that is folded
// into it.
struct ResNet {
  std::string_view name;
  Block block;
  std::array<int, 4> depths;  // blocks in each of the four stages
};
constexpr std::array<ResNet, 5> kResNets{{
    {"resnet18", Block::kBasic, {2, 2, 2, 2}},
    {"resnet34", Block::kBasic, {3, 4, 6, 3}},
    {"resnet50", Block::kBottleneck, {3, 4, 6, 3}},
    {"resnet101", Block::kBottleneck, {3, 4, 23, 3}},
    {"resnet152", Block::kBottleneck, {3, 8, 36, 3}},
}};

// Returns the gain of a branch: smaller the more branches add up in a stage, so that depth does not wash the
// picture out.
double BranchGain(int blocks) { return 0.5 / blocks; }

// One residual block: relu(shortcut(x) + branch(x)).
Activation AddBlock(GraphWriter& graph, const std::string& name, const Activation& x, Block block, int width,
                    int stride, double branch_gain) {
  const int channels = block == Block::kBasic ? width : 4 * width;
  const auto relu = [&](const std::string& layer, const Activation& in, const ConvolutionSpec& spec) {
    return graph.Relu(name + ".relu" + layer, graph.Convolution(name + ".conv" + layer, in, spec));
  };
  Activation branch = x;
  if (block == Block::kBasic) {
    branch = relu("1", branch, {.channels = width, .kernel = 3, .stride = stride});
    branch =
        graph.Convolution(name + ".conv2", branch, {.channels = channels, .kernel = 3, .gain = branch_gain});
  } else {
    branch = relu("1", branch, {.channels = width});
    branch = relu("2", branch, {.channels = width, .kernel = 3, .stride = stride});
    branch = graph.Convolution(name + ".conv3", branch, {.channels = channels, .gain = branch_gain});
  }
  const bool same_shape = stride == 1 && x.channels == channels;
  const Activation shortcut =
      same_shape ? x : graph.Convolution(name + ".downsample", x, {.channels = channels, .stride = stride});
  return graph.Relu(name + ".relu", graph.Add(name + ".add", branch, shortcut));
}

Activation AddResNet(GraphWriter& graph, const Activation& input, const ResNet& resnet) {
  Activation x =
      graph.Relu("relu", graph.Convolution("conv1", input, {.channels = 64, .kernel = 7, .stride = 2}));
  x = graph.MaxPool("maxpool", x, 3, 2);
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < resnet.depths[stage]; ++block) {
      const int stride = stage > 0 && block == 0 ? 2 : 1;
      x = AddBlock(graph, fmt::format("layer{}.{}", stage + 1, block), x, resnet.block, 64 << stage, stride,
                   BranchGain(resnet.depths[stage]));
    }
  }
  return x;
}

Activation AddTiny(GraphWriter& graph, const Activation& input) {
  Activation x =
      graph.Relu("relu1", graph.Convolution("conv1", input, {.channels = 32, .kernel = 5, .stride = 2}));
  x = graph.Relu("relu2", graph.Convolution("conv2", x, {.channels = 64, .kernel = 3, .stride = 2}));
  x = graph.Relu("relu3", graph.Convolution("conv3", x, {.channels = 128, .kernel = 3, .stride = 2}));
  return graph.Relu("relu4", graph.Convolution("conv4", x, {.channels = 256}));
}

}  // namespace

const std::vector<std::string>& NetworkNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list{"tiny"};
    for (const ResNet& resnet : kResNets) list.emplace_back(resnet.name);
    return list;
  }();
  return names;
}

dataset::Size InputSize(std::string_view name) {
  return name == "tiny" ? dataset::Size{64, 64} : dataset::Size{224, 224};
}

Network BuildNetwork(const std::string& name, Seed seed) {
  Network network{.graph = GraphWriter(name, seed.Stream("weights")), .features = {}};
  const dataset::Size size = InputSize(name);
  network.graph.Input("input", std::array<int64_t, 4>{-1, 3, size.height, size.width});
  const Activation input{"input", 3};
  const auto resnet = std::ranges::find(kResNets, name, &ResNet::name);
  CHECK(resnet != kResNets.end() || name == "tiny");
  const Activation last =
      resnet == kResNets.end() ? AddTiny(network.graph, input) : AddResNet(network.graph, input, *resnet);
  network.features = network.graph.GlobalAverage("features", last);
  return network;
}

}  // namespace weir::synth
