#include "oip/triton_names.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::oip::triton {
namespace {

// Clients and tests of Triton look for these texts, word for word.
TEST(TritonWords, AreThoseThatClientsMatchOn) {
  EXPECT_EQ(UnknownModel("m").message, "Request for unknown model: 'm' is not found");
  EXPECT_EQ(NoVersions("m", "").message, "Request for unknown model: 'm' has no available versions");
  EXPECT_EQ(NoVersions("m", "unloaded").message,
            "Request for unknown model: 'm' has no available versions (unloaded)");
  EXPECT_EQ(UnknownVersion("m", "2").message, "Request for unknown model: 'm' version 2 is not found");
  EXPECT_EQ(VersionNotReady("m", "2", "").message,
            "Request for unknown model: 'm' version 2 is not at ready state");
  EXPECT_EQ(RegionExists("r").message, "shared memory region 'r' already in manager");
  EXPECT_EQ(UnknownRegion("system", "r").message, "Unable to find system shared memory region: 'r'");
  EXPECT_EQ(QueueIsFull("", "").message, "[request id: <id_unknown>] Exceeds maximum queue size");
  EXPECT_EQ(UnequalBatch("7", "m", "x").message,
            "[request id: 7] input 'x' batch size does not match other inputs for 'm'");
  EXPECT_EQ(ControlIsOff("").message, "explicit model load / unload is not allowed if polling is enabled");
}

TEST(TritonWords, RefuseVersionsThatAreNoNumbers) {
  EXPECT_TRUE(CheckVersion(""));
  EXPECT_TRUE(CheckVersion("12"));
  const Error error = CheckVersion("wrong").error();
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(error.message.starts_with(
      "failed to get model version from specified version string 'wrong' (details: "))
      << error.message;
  EXPECT_FALSE(CheckVersion("1x"));
  EXPECT_FALSE(CheckVersion("99999999999999999999"));
  EXPECT_EQ(CheckVersion("-1").error().message,
            "invalid model version specified '-1' , version should be an integral value > 0");
}

TEST(TritonWords, TellAFolderThatCannotBeReadFromAModelThatCannotRun) {
  EXPECT_EQ(
      FailedToLoad("m", {ErrorCode::kNotFound, "no file"}),
      (Error{ErrorCode::kInternal, "failed to load 'm', failed to poll from model repository (no file)"}));
  EXPECT_EQ(FailedToLoad("m", {ErrorCode::kInternal, "it broke"}).message,
            "failed to load 'm', no version is available (it broke)");
}

TEST(TritonWords, ShowNamesOfClientsInOneShortLine) {
  EXPECT_EQ(UnexpectedInput("m",
                            "a\xff"
                            "b")
                .message,
            "unexpected inference input 'a\\xFFb' for model 'm'");
  EXPECT_LT(UnknownModel(std::string(1'000'000, 'x')).message.size(), 400U);
}

}  // namespace
}  // namespace weir::oip::triton
