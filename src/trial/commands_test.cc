#include "trial/commands.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace weir::trial {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

ClientPlaces Places() {
  return {.program = "weir",
          .model = "M",
          .data = {"D"},
          .expected = {},
          .answers = "a.csv",
          .streams = 2,
          .shapes = {},
          .seed = 6};
}

TEST(ClientArguments, RunTheApplicationWithAnEngineOfItsOwn) {
  EXPECT_EQ(Line(ClientArguments({.mode = Mode::kSync, .batch = 4, .engine = "openvino", .threads = 3},
                                 {.passes = 7}, Places())),
            "weir run M D --mode sync --batch 4 --repeat-data 7 --engine openvino --precision f32 --threads "
            "3 --streams 2 "
            "--top 1 --answers a.csv --json -");
}

TEST(ClientArguments, WatchLiveStreams) {
  const Setting setting{.load = StreamsLoad{.streams = 2, .fps = 12.5, .deadline_ms = 80}, .threads = 3};
  EXPECT_EQ(Line(ClientArguments(setting, {.seconds = 4}, Places())),
            "weir watch made:fps=12.5,seed=6 made:fps=12.5,seed=7 --classify M --deadline 80ms --duration 4s "
            "--precision f32 --threads 3 --engine-streams 2 --json -");
  Setting remote = setting;
  remote.architecture = Architecture::kMicroservice;
  EXPECT_THAT(Line(ClientArguments(remote, {.seconds = 4}, Places())), Not(HasSubstr("--threads")));
}

TEST(ClientArguments, LeaveTheEngineToAServer) {
  const Setting setting{.architecture = Architecture::kDistributed,
                        .in_flight = 5,
                        .data_path = DataPath::kMemory,
                        .payload = Payload::kPixels,
                        .engine = "openvino"};
  EXPECT_EQ(
      Line(ClientArguments(setting, {}, Places())),
      "weir run M D --mode async --batch 8 --in-flight 5 --repeat-data 1 --no-files --payload pixels --top 1 "
      "--answers a.csv --json -");
}

TEST(ClientArguments, GiveAnEmulatedAcceleratorNoThreads) {
  const std::string line = Line(ClientArguments({.engine = "emulated:base=1ms", .threads = 3}, {}, Places()));
  EXPECT_THAT(line, HasSubstr("--engine emulated:base=1ms --top"));
  EXPECT_THAT(line, Not(HasSubstr("--precision")));
}

TEST(ClientArguments, PlayALoadInAClosedLoop) {
  ClientPlaces places = Places();
  places.expected = "answers.csv";
  const Setting setting{.architecture = Architecture::kMicroservice, .in_flight = 4, .load = ClosedLoad{}};
  EXPECT_EQ(Line(ClientArguments(setting, {.requests = 90}, places)),
            "weir load M --concurrency-range 4 --batch-size 8 --data D --payload tensor --split response "
            "--check answers.csv "
            "--request-count 90 "
            "--seed 3 --json -");
}

TEST(ClientArguments, PlayALoadAtARateForATime) {
  ClientPlaces places = Places();
  places.data.clear();
  places.shapes = {{"x", {3, 4}}};
  const Setting setting{.architecture = Architecture::kMicroservice,
                        .load = OpenLoad{.per_second = 50, .distribution = "poisson"},
                        .shared_memory = true};
  EXPECT_EQ(Line(ClientArguments(setting, {.seconds = 2.5}, places)),
            "weir load M --request-rate-range 50 --request-distribution poisson --batch-size 8 --pool 16 "
            "--shape x:3,4 "
            "--shared-memory system --split response --duration 2.5 --seed 3 --json -");
}

TEST(ClientArguments, PlayALoadByAgents) {
  ClientPlaces places = Places();
  Setting setting{
      .architecture = Architecture::kDistributed, .in_flight = 4, .load = ClosedLoad{}, .clients = 2};
  const auto line = [&] { return Line(ClientArguments(setting, {.requests = 90}, places)); };
  EXPECT_THAT(line(), AllOf(HasSubstr("--concurrency-range 4"), HasSubstr("--hosts local,local"),
                            Not(HasSubstr("--split"))));
  places.client_hosts = {"u@a", "u@b", "u@c"};
  EXPECT_THAT(line(), HasSubstr("--hosts u@a,u@b "));
  setting.clients = 1;
  EXPECT_THAT(line(), HasSubstr("--hosts u@a "));
  setting.architecture = Architecture::kInProcess;
  EXPECT_THAT(line(), Not(HasSubstr("--hosts")));
  setting = {
      .architecture = Architecture::kDistributed, .mode = Mode::kSync, .load = ClosedLoad{}, .clients = 3};
  EXPECT_THAT(line(), AllOf(HasSubstr("--concurrency-range 3"), HasSubstr("--sync")));
}

TEST(PhaseArguments, RunUntilTheyAreToldToEnd) {
  EXPECT_EQ(Line(FeedArguments("weir", "set", 6, "feed.json")),
            "weir feed set --bench --duration 86400 --seed 3 --json feed.json");
  EXPECT_EQ(Line(PrepareArguments("weir", "pictures", "out")),
            "weir prepare pictures -o out --replicate 10000000");
}

TEST(ServeArguments, AllowSharedMemoryOnlyWhereItIsUsed) {
  EXPECT_THAT(Line(ServeArguments({})), Not(HasSubstr("shm")));
  EXPECT_THAT(Line(ServeArguments({.shared_memory = true})), HasSubstr("--allow-client-shm"));
}

TEST(ClientArguments, FactorThatIsAFlagAloneNeedsNoCode) {
  const auto arguments = [](int threads) {
    const Setting setting = ReadSetting({{"decode_threads", threads}}).value();
    return ClientArguments(setting, {}, {.program = "weir"});
  };
  const std::vector<std::string> given = arguments(3), usual = arguments(0);
  const auto flag = std::ranges::find(given, "--decode-threads");
  ASSERT_NE(flag, given.end());
  EXPECT_EQ(*(flag + 1), "3");
  EXPECT_EQ(std::ranges::find(usual, "--decode-threads"), usual.end());
}

}  // namespace
}  // namespace weir::trial
