#include "infer/choices.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::infer {
namespace {

TEST(Choices, AreFoundByTheirWords) {
  EXPECT_EQ(FindChoice(kModes, "async"), Mode::kAsync);
  EXPECT_EQ(FindChoice(kModes, "Async"), std::nullopt);
  EXPECT_EQ(FindChoice(kProtocolSpellings, "gRPC"), Protocol::kGrpc);
  EXPECT_EQ(ToString(Protocol::kGrpc), "grpc");
  EXPECT_EQ(ListOf(kPayloads), "tensor, pixels or image");
  EXPECT_EQ(ListOf(kModes), "sync or async");
  EXPECT_EQ(WordsOf(kBalances).size(), 3u);
}

TEST(Choices, NameTheSuffixOfAPayload) {
  for (const auto& [payload, word] : kPayloads) {
    const bool has_suffix = payload != Payload::kTensor;
    EXPECT_EQ(SuffixOf(payload), has_suffix ? "." + std::string(word) : "");
  }
}

}  // namespace
}  // namespace weir::infer
