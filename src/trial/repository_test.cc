#include "trial/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "base/thread.h"

namespace weir::trial {
namespace {

using testing::HasSubstr;

TEST(StreamsOf, GivesEachInstanceItsStreams) {
  const model::Model model;
  EXPECT_EQ(StreamsOf({.streams = 3}, model), 3);
  EXPECT_EQ(StreamsOf({.instances = 2}, model), 2);
  EXPECT_EQ(StreamsOf({.streams = 1, .instances = 2}, model), 2);
  EXPECT_EQ(StreamsOf({.streams = 2, .instances = 4}, model), 8);
}

TEST(StreamsOf, LeavesAnAcceleratorItsOwn) {
  EXPECT_EQ(StreamsOf({.engine = "emulated:per_item=1ms", .streams = 3}, {}), 0);
}

TEST(StreamsOf, IsTheModelsOrOneAThreadWhereNothingIsSaid) {
  model::Model model;
  model.parameters["streams"] = "5";
  EXPECT_EQ(StreamsOf({}, model), 5);
  EXPECT_EQ(StreamsOf({.threads = 1}, {}), 1);
  EXPECT_EQ(StreamsOf({}, {}), UsableCpus());
}

TEST(MakeRepository, SetsTheConfigurationOfAnotherServersModelAndLeavesItsOwnAlone) {
  const TemporaryFolder folder = TemporaryFolder::Make("repository").value();
  const std::string models = folder.path() + "/models", text = "backend: \"python\"\nmax_batch_size: 4\n";
  ASSERT_TRUE(MakeFolders(models + "/slow/1"));
  ASSERT_TRUE(WriteFileWhole(models + "/slow/config.pbtxt", text));
  ASSERT_TRUE(WriteFileWhole(models + "/slow/1/model.py", "pass\n"));
  const OtherServer server{.name = "triton", .model = "slow", .repository = models};
  const Setting setting{.server = server,
                        .batch = 8,
                        .instances = 3,
                        .instances_given = true,
                        .server_batching = ServerBatching{.max_batch = 4, .delay_us = 100}};
  const auto made = MakeRepository(folder.path() + "/work", setting, server);
  ASSERT_TRUE(made) << made.error().message;
  const std::string config = ReadTextFile(*made + "/slow/config.pbtxt").value();
  EXPECT_THAT(config, HasSubstr("count: 3"));
  EXPECT_THAT(config, HasSubstr("max_batch_size: 8"));  // a request of the trial has 8 rows
  EXPECT_THAT(config, HasSubstr("max_queue_delay_microseconds: 100"));
  EXPECT_EQ(ReadTextFile(*made + "/slow/1/model.py").value(), "pass\n");
  EXPECT_EQ(ReadTextFile(models + "/slow/config.pbtxt").value(), text);
  EXPECT_EQ(MakeRepository(folder.path() + "/work", setting, server).value(), *made);
  // Fields that the study does not set stay as they are.
  EXPECT_EQ(ServedConfig(Setting{.server = server}, server).value(), text);
}

TEST(MakeRepository, LeavesOutTheFolderInWhichTheCopiesLie) {
  const TemporaryFolder folder = TemporaryFolder::Make("repository").value();
  const std::string models = folder.path();
  ASSERT_TRUE(MakeFolders(models + "/slow/1"));
  ASSERT_TRUE(WriteFileWhole(models + "/slow/1/model.py", "pass\n"));
  const OtherServer server{.name = "triton", .model = "slow", .repository = models};
  for (const std::string inside : {"/advice", "/slow/advice"}) {
    const std::string out = models + inside;
    ASSERT_TRUE(MakeFolders(out + "/work"));
    ASSERT_TRUE(WriteFileWhole(out + "/search.jsonl", "{}\n"));
    const auto made = MakeRepository(out + "/work/repositories", Setting{.server = server}, server);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(ReadTextFile(*made + "/slow/1/model.py").value(), "pass\n");
    EXPECT_FALSE(ReadTextFile(*made + inside + "/search.jsonl"));
  }
}

TEST(MakeRepository, NamesAModelThatIsNotThere) {
  const OtherServer server{.name = "triton", .model = "slow", .repository = "/nonexistent"};
  const auto made = MakeRepository("/nonexistent/work", {}, server);
  EXPECT_EQ(made.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(made.error().message, HasSubstr("has no model slow"));
}

}  // namespace
}  // namespace weir::trial
