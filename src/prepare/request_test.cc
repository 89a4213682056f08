#include "prepare/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "prepare/session.h"

namespace weir::prepare {
namespace {

using testing::HasSubstr;

PrepareRequest Reading() { return {.sources = {.paths = {"pictures"}}, .options = {.folder = "set"}}; }

std::string ErrorOf(const PrepareRequest& request) {
  const Status status = CheckRequest(request);
  return status ? "no error" : status.error().message;
}

TEST(CheckRequest, WantsASourceAndAFolder) {
  EXPECT_EQ(ErrorOf(Reading()), "no error");
  EXPECT_THAT(ErrorOf({.sources = {.paths = {"pictures"}}}), HasSubstr("-o DIR"));
  EXPECT_THAT(ErrorOf({.options = {.folder = "set"}}), HasSubstr("--make N"));
  PrepareRequest both = Reading();
  both.make = 3;
  EXPECT_THAT(ErrorOf(both), HasSubstr("either"));
}

TEST(CheckRequest, RefusesFlagsThatTheWayOfWorkingDoesNotLookAt) {
  EXPECT_THAT(ErrorOf({.verify = "set", .given = {"--verify", "--sample"}}), HasSubstr("--sample"));
  PrepareRequest join = Reading();
  join.join = true;
  join.given = {"--join", "SRC", "--output"};
  EXPECT_EQ(ErrorOf(join), "no error");
  join.given.push_back("--recipe");
  EXPECT_THAT(ErrorOf(join), HasSubstr("--recipe"));
  PrepareRequest copied = Reading();
  copied.given = {"--quality"};
  EXPECT_THAT(ErrorOf(copied), HasSubstr("--quality"));
  copied.recipe = "recipe.yaml";
  EXPECT_EQ(ErrorOf(copied), "no error");
  copied.given = {"--min-score"};
  EXPECT_THAT(ErrorOf(copied), HasSubstr("--recognise"));
  EXPECT_THAT(ErrorOf({.options = {.folder = "set"}, .make = 2, .given = {"--labels"}}),
              HasSubstr("--labels"));
  PrepareRequest shrunk = Reading();
  shrunk.options.shrink = true;
  EXPECT_THAT(ErrorOf(shrunk), HasSubstr("--recipe"));
}

TEST(CheckRequest, RefusesASetWithinItsOwnSource) {
  const std::string folder = testing::TempDir() + "prepare_request";
  std::filesystem::create_directories(folder);
  EXPECT_THAT(ErrorOf({.sources = {.paths = {folder}}, .options = {.folder = folder + "/set"}}),
              HasSubstr("within its own source"));
  std::filesystem::remove_all(folder);
}

TEST(CompleteRequest, GivesTheSeedAndTheList) {
  PrepareRequest request = Reading();
  request.seed = 7;
  request.list = "names.txt";
  ASSERT_TRUE(CompleteRequest(request));
  EXPECT_EQ(request.options.split_seed, 7U);
  EXPECT_EQ(request.sources.lists, std::vector<std::string>{"names.txt"});
  request.recipe = "/nowhere/recipe.yaml";
  EXPECT_FALSE(CompleteRequest(request));
}

TEST(Prepare, AnErrorOfTheJudgeEndsIt) {
  PrepareRequest request{
      .options = {.folder = testing::TempDir() + "prepare_judge"}, .make = 1, .recognise = "m"};
  SessionHooks hooks;
  hooks.add_judge = [](const PrepareRequest& asked, Options&) -> Status {
    return Fail(ErrorCode::kNotFound, "no model " + asked.recognise);
  };
  const ManualClock clock;
  const auto end = Prepare(request, hooks, clock, {});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "no model m");
}

}  // namespace
}  // namespace weir::prepare
