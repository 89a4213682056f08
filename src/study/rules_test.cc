#include "study/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

TEST(MakeSense, LeavesAServersFactorsOutOfOneProcess) {
  const Sense sense = MakeSense({{"architecture", "in-process"},
                                 {"protocol", "grpc"},
                                 {"payload", "pixels"},
                                 {"network", {{"rate_gbit_per_s", 5}}},
                                 {"instances", 2},
                                 {"batch", 8}});
  EXPECT_EQ(sense.factors, (Json{{"architecture", "in-process"}, {"batch", 8}}));
  EXPECT_EQ(sense.changes.size(), 4u);
  EXPECT_THAT(sense.changes[0], HasSubstr("protocol is not applicable: there is no server in one process"));
  EXPECT_EQ(sense.dropped, std::nullopt);
}

TEST(MakeSense, HasOneBatchInFlightInSyncMode) {
  const Sense sense = MakeSense({{"mode", "sync"}, {"in_flight", 4}});
  EXPECT_EQ(sense.factors["in_flight"], 1);
  EXPECT_THAT(sense.changes, ElementsAre(HasSubstr("in_flight 4 is 1")));
  EXPECT_EQ(MakeSense({{"mode", "async"}, {"in_flight", 4}}).factors["in_flight"], 4);
  EXPECT_THAT(MakeSense({{"mode", "sync"}}).changes, IsEmpty());
}

TEST(MakeSense, HasSeveralClientsForALoadOnly) {
  const Json load{{"architecture", "distributed"}, {"load", "closed"}, {"clients", 3}};
  const auto with = [&](const Json& more) {
    Json all = load;
    all.update(more);
    return MakeSense(all);
  };
  EXPECT_EQ(with({{"in_flight", 3}}).dropped, std::nullopt);
  EXPECT_THAT(with({{"in_flight", 2}}).dropped, Optional(HasSubstr("in_flight is 2")));
  EXPECT_EQ(with({{"mode", "sync"}}).dropped, std::nullopt);
  EXPECT_EQ(with({{"load", {{"rate_per_s", 5}, {"distribution", "poisson"}}}}).factors["clients"], 3);
  EXPECT_FALSE(with({{"load", "application"}}).factors.contains("clients"));
  EXPECT_FALSE(with({{"architecture", "in-process"}}).factors.contains("clients"));
  EXPECT_THAT(with({{"in_flight", 3}, {"payload", "shared-memory"}}).dropped, Optional(HasSubstr("shared")));
}

TEST(MakeSense, HasALinkBetweenNodesOnly) {
  const Json link{{"rate_gbit_per_s", 5}};
  EXPECT_FALSE(MakeSense({{"architecture", "microservice"}, {"network", link}}).factors.contains("network"));
  EXPECT_TRUE(MakeSense({{"architecture", "distributed"}, {"network", link}}).factors.contains("network"));
}

TEST(MakeSense, SharesMemoryOnlyOnOneHostAndWithTheLoadGenerator) {
  EXPECT_THAT(
      MakeSense({{"architecture", "distributed"}, {"payload", "shared-memory"}, {"load", "closed"}}).dropped,
      Optional(HasSubstr("two nodes share no memory")));
  EXPECT_THAT(MakeSense({{"architecture", "microservice"}, {"payload", "shared-memory"}}).dropped,
              Optional(HasSubstr("load: closed")));
  EXPECT_EQ(
      MakeSense({{"architecture", "microservice"}, {"payload", "shared-memory"}, {"load", "closed"}}).dropped,
      std::nullopt);
}

TEST(MakeSense, ReadsNoFilesForTheLoadGenerator) {
  const Sense sense = MakeSense({{"load", "closed"},
                                 {"data_path", "files"},
                                 {"images", 1500},
                                 {"replication", 9},
                                 {"page_cache", "cold"},
                                 {"decode_threads", 2},
                                 {"mode", "async"}});
  EXPECT_EQ(sense.factors, (Json{{"mode", "async"}, {"load", "closed"}}));
}

TEST(MakeSense, DoesNotWaitInAnOpenLoop) {
  const Sense sense = MakeSense({{"load", {{"rate_per_s", 400.0}}}, {"mode", "sync"}, {"in_flight", 4}});
  EXPECT_EQ(sense.factors.size(), 1u);
}

TEST(MakeSense, SendsTheFramesOfLiveStreamsOneByOneAsTensors) {
  const Json streams{{"streams", 4}, {"fps", 10.0}, {"deadline_ms", 100.0}};
  const Sense sense = MakeSense({{"load", streams}, {"mode", "sync"}, {"batch", 8}, {"data_path", "shards"}});
  EXPECT_EQ(sense.factors, (Json{{"load", streams}}));
  EXPECT_FALSE(sense.dropped);
  EXPECT_TRUE(MakeSense({{"load", streams}, {"architecture", "microservice"}, {"payload", "image"}}).dropped);
}

TEST(MakeSense, CachesNoPagesOfWhatLiesInMemory) {
  const Sense sense =
      MakeSense({{"data_path", "memory"}, {"page_cache", "cold"}, {"decode_threads", 2}, {"images", 1500}});
  EXPECT_EQ(sense.factors, (Json{{"data_path", "memory"}, {"images", 1500}}));
}

TEST(MakeSense, LetsAnAcceleratorTakeTheEnginesPlace) {
  const Sense sense = MakeSense({{"engine", "openvino"},
                                 {"accelerator", "emulated:per_item=1ms"},
                                 {"architecture", "microservice"},
                                 {"threads", 2},
                                 {"streams", 2},
                                 {"instances", 2},
                                 {"precision", "f32"}});
  EXPECT_EQ(sense.factors, (Json{{"architecture", "microservice"},
                                 {"accelerator", "emulated:per_item=1ms"},
                                 {"precision", "f32"}}));
  EXPECT_THAT(MakeSense({{"engine", "emulated:base=1ms"}, {"precision", "bf16"}}).dropped,
              Optional(HasSubstr("f32 only")));
  EXPECT_EQ(MakeSense({{"engine", "openvino"}, {"accelerator", "none"}, {"threads", 2}}).factors.size(), 3u);
}

TEST(MakeSense, LeavesAServerOfOthersItsOwnSettings) {
  const Json triton{{"name", "triton"}, {"command", {"tritonserver"}}, {"ready", "http://127.0.0.1:8000/"}};
  const Sense sense = MakeSense({{"architecture", "microservice"},
                                 {"server", triton},
                                 {"protocol", "http"},
                                 {"engine", "openvino"},
                                 {"instances", 2}});
  EXPECT_EQ(sense.factors,
            (Json{{"architecture", "microservice"}, {"server", triton}, {"protocol", "http"}}));
  // With a repository of its own the study sets its configuration.
  Json with_repository = triton;
  with_repository["repository"] = "models";
  EXPECT_TRUE(MakeSense({{"architecture", "microservice"}, {"server", with_repository}, {"instances", 2}})
                  .factors.contains("instances"));
  EXPECT_THAT(MakeSense({{"architecture", "microservice"}, {"server", triton}, {"protocol", "grpc"}}).dropped,
              Optional(HasSubstr("give it grpc: grpc://HOST:PORT")));
  EXPECT_THAT(
      MakeSense({{"architecture", "microservice"}, {"server", triton}, {"payload", "pixels"}}).dropped,
      Optional(HasSubstr("only weir's")));
  // In one process it is not there at all.
  EXPECT_EQ(
      MakeSense({{"architecture", "in-process"}, {"server", triton}, {"engine", "openvino"}}).factors.size(),
      2u);
}

TEST(MakeSense, KnowsWhereAServerThatRunsAlreadyIs) {
  const Json here{{"name", "a"}, {"url", "http://127.0.0.1:8000"}},
      there{{"name", "b"}, {"url", "http://10.0.0.2:8000"}};
  EXPECT_EQ(MakeSense({{"architecture", "microservice"}, {"server", here}}).dropped, std::nullopt);
  EXPECT_THAT(MakeSense({{"architecture", "distributed"}, {"server", here}}).dropped,
              Optional(HasSubstr("on this host")));
  EXPECT_EQ(MakeSense({{"architecture", "distributed"}, {"server", there}}).dropped, std::nullopt);
  EXPECT_THAT(MakeSense({{"architecture", "microservice"}, {"server", there}}).dropped,
              Optional(HasSubstr("on another")));
}

TEST(MakeSense, SetsNothingOfAServerThatRunsAlready) {
  const Json there{{"name", "b"}, {"url", "http://10.0.0.2:8000"}};
  const Sense sense = MakeSense(
      {{"architecture", "distributed"}, {"server", there}, {"network", {{"rate_gbit_per_s", 5.0}}}});
  EXPECT_EQ(sense.factors, (Json{{"architecture", "distributed"}, {"server", there}}));
  EXPECT_THAT(sense.changes,
              ElementsAre(HasSubstr("network is not applicable: the server b is running already")));
  EXPECT_THAT(MakeSense({{"architecture", "distributed"},
                         {"server", there},
                         {"placement", {{"server", "0"}, {"client", "1"}}}})
                  .dropped,
              Optional(HasSubstr("placement")));
}

TEST(MakeSense, KeepsWhatSaysSomethingOnADeviceOfCuda) {
  const Json on =
      MakeSense({{"device", "cuda:0"}, {"cuda_graph", "on"}, {"instances", 2}, {"threads", 4}}).factors;
  EXPECT_EQ(on, (Json{{"device", "cuda:0"}, {"cuda_graph", "on"}, {"instances", 2}}));
  const Sense cpu =
      MakeSense({{"device", "cpu"}, {"instances", 2}, {"cuda_graph", "on"}, {"preprocess", "gpu"}});
  EXPECT_EQ(cpu.factors, (Json{{"device", "cpu"}}));
  EXPECT_THAT(MakeSense({{"precision", "tf32"}}).dropped, Optional(HasSubstr("only CUDA")));
  EXPECT_FALSE(MakeSense({{"precision", "tf32"}, {"gpus", 2}}).dropped);
  EXPECT_FALSE(
      MakeSense({{"accelerator", "emulated:per_item=1ms"}, {"device", "cuda:0"}}).factors.contains("device"));
}

TEST(MakeSense, PutsFactorsIntoTheirOrder) {
  EXPECT_EQ(DumpJson(MakeSense({{"batch", 8}, {"architecture", "in-process"}}).factors),
            R"({"architecture":"in-process","batch":8})");
}

TEST(MakeSense, PutsAServerThatIsNamedWhereItIs) {
  const auto architecture_of = [](const Json& server) {
    return MakeSense(Json{{"server", server}}).factors.value("architecture", "none");
  };
  EXPECT_EQ(architecture_of("weir"), "microservice");
  EXPECT_EQ(architecture_of({{"name", "s"}, {"url", "http://127.0.0.1:8000"}}), "microservice");
  EXPECT_EQ(architecture_of({{"name", "s"}, {"url", "http://10.1.2.3:8000"}}), "distributed");
  EXPECT_FALSE(MakeSense(Json::object()).factors.contains("architecture"));
  EXPECT_FALSE(
      MakeSense(Json{{"server", "weir"}, {"architecture", "in-process"}}).factors.contains("server"));
}

}  // namespace
}  // namespace weir::study
