#include "infer/choices.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::infer {
namespace {

TEST(FindChoice, FindsEachChoiceByItsWord) {
  for (const Protocol protocol : kProtocols) EXPECT_EQ(FindChoice(kProtocols, ToString(protocol)), protocol);
  for (const Mode mode : kModes) EXPECT_EQ(FindChoice(kModes, ToString(mode)), mode);
  for (const Payload payload : kPayloads) {
    EXPECT_EQ(FindChoice(kPayloads, ToString(payload)), payload);
    const bool has_suffix = payload != Payload::kTensor;
    EXPECT_EQ(SuffixOf(payload), has_suffix ? "." + std::string(ToString(payload)) : "");
  }
  for (const Balance balance : kBalances) EXPECT_EQ(FindChoice(kBalances, ToString(balance)), balance);
  EXPECT_EQ(FindChoice(kModes, "Async"), std::nullopt);
}

}  // namespace
}  // namespace weir::infer
