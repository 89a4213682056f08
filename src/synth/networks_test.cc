#include "synth/networks.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "onnx/graph.h"

namespace weir::synth {
namespace {

// The whole network as a file has it, with a last layer of zeros.
std::string Serialised(const std::string& name, Seed seed) {
  Network network = BuildNetwork(name, seed);
  const std::vector<float> weights(1000 * static_cast<size_t>(network.features.channels)), bias(1000);
  network.graph.Linear("logits", network.features, weights, bias);
  network.graph.Output("logits", std::array<int64_t, 2>{-1, 1000});
  std::string bytes;
  EXPECT_TRUE(network.graph.model().SerializeToString(&bytes));
  return bytes;
}

// As torchvision publishes them with its weights (num_params, and _ops in billions of multiply-adds).
struct Published {
  const char* name;
  double parameters;
  double multiply_adds;
  int depth;
};
class ResNets : public testing::TestWithParam<Published> {};

TEST_P(ResNets, HaveThePublishedParametersAndWork) {
  const auto facts = onnx::ParseGraph(Serialised(GetParam().name, Seed(1)), "");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  ASSERT_TRUE(facts->parameters && facts->multiply_adds_per_item && facts->depth);
  EXPECT_NEAR(static_cast<double>(*facts->parameters) / GetParam().parameters, 1, 0.005);
  EXPECT_NEAR(static_cast<double>(*facts->multiply_adds_per_item) / GetParam().multiply_adds, 1, 0.005);
  EXPECT_EQ(*facts->depth, GetParam().depth);
  EXPECT_TRUE(facts->batchable()) << facts->not_batchable;
  EXPECT_EQ(facts->opsets, (std::map<std::string, int64_t>{{"", 13}}));
  ASSERT_EQ(facts->inputs.size(), 1U);
  EXPECT_EQ(facts->inputs[0].shape, (std::vector<int64_t>{-1, 3, 224, 224}));
  ASSERT_EQ(facts->outputs.size(), 1U);
  EXPECT_EQ(facts->outputs[0].shape, (std::vector<int64_t>{-1, 1000}));
}

INSTANTIATE_TEST_SUITE_P(All, ResNets,
                         testing::Values(Published{"resnet18", 11689512, 1.814e9, 18},
                                         Published{"resnet34", 21797672, 3.664e9, 34},
                                         Published{"resnet50", 25557032, 4.089e9, 50},
                                         Published{"resnet101", 44549160, 7.801e9, 101},
                                         Published{"resnet152", 60192808, 11.514e9, 152}),
                         [](const auto& info) { return info.param.name; });

TEST(BuildNetwork, GivesTheSameBytesForASeedAndOthersForAnother) {
  EXPECT_EQ(Serialised("tiny", Seed(1)), Serialised("tiny", Seed(1)));
  EXPECT_NE(Serialised("tiny", Seed(1)), Serialised("tiny", Seed(2)));
}

TEST(BuildNetwork, GivesFiltersThatSumToZeroAndKeepTheVariance) {
  const Network network = BuildNetwork("tiny", Seed(1));
  int convolutions = 0;
  for (const pb::TensorProto& tensor : network.graph.model().graph().initializer()) {
    if (tensor.dims_size() != 4) continue;
    ++convolutions;
    const auto* weights = reinterpret_cast<const float*>(tensor.raw_data().data());
    const int64_t filters = tensor.dims(0), size = tensor.dims(1) * tensor.dims(2) * tensor.dims(3);
    double squares = 0;
    for (int64_t f = 0; f < filters; ++f) {
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        sum += weights[f * size + i];
        squares += weights[f * size + i] * weights[f * size + i];
      }
      EXPECT_NEAR(sum, 0, 1e-5);
    }
    EXPECT_NEAR(squares / static_cast<double>(filters), 2, 0.2);  // so that a ReLU passes on what came in
  }
  EXPECT_EQ(convolutions, 4);
}

}  // namespace
}  // namespace weir::synth
