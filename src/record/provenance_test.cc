#include "record/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::record {
namespace {

TEST(Provenance, TellsThisHostAndThisBuild) {
  const Provenance here = CollectProvenance(
      {.command = {"weir", "run", "a b"}, .seed = 7, .libraries = {{"onnxruntime", "1.31.1"}}});
  char host[256] = "";
  ::gethostname(host, sizeof host);
  EXPECT_EQ(here.host, host);
  EXPECT_FALSE(here.cpu_model.empty());
  EXPECT_GE(here.logical_cpus, here.usable_cpus);
  EXPECT_GE(here.usable_cpus, 1);
  EXPECT_GT(here.memory_bytes, 100 << 20);
  EXPECT_FALSE(here.build_id.empty());
  EXPECT_THAT(here.build_id, testing::Not(testing::HasSubstr("dirty")));
  EXPECT_EQ(here.command, "weir run 'a b'");
  EXPECT_THAT(here.wall_time, testing::MatchesRegex("....-..-..T..:..:..Z"));
}

TEST(Provenance, LeavesOutOfItsJsonWhatCannotBeRead) {
  Provenance provenance{.host = "h", .cgroup_cpus = 1.5, .libraries = {{"openvino", "2026.4.1"}}, .seed = 7};
  const Json json = provenance.ToJson();
  EXPECT_FALSE(json.contains("governor"));
  EXPECT_FALSE(json.contains("cgroup_memory_bytes"));
  EXPECT_EQ(json["cgroup_cpus"], 1.5);
  EXPECT_EQ(json["libraries"]["openvino"], "2026.4.1");
  EXPECT_EQ(json["seed"], 7);
}

TEST(Provenance, FindsTheModelOfTheCpu) {
  EXPECT_EQ(ParseCpuModel("processor\t: 0\nmodel name\t: AMD EPYC: 9\nflags\t: fpu\n"), "AMD EPYC: 9");
  EXPECT_EQ(ParseCpuModel("processor\t: 0\nCPU implementer\t: 0x41\n"), std::nullopt);
}

TEST(CommandLine, QuotesOnlyWhatAShellWouldChange) {
  const std::vector<std::string> arguments{"weir", "--batch=8", "", "it's", "a\\b", "é", "$HOME"};
  EXPECT_EQ(CommandLine(arguments), R"(weir --batch=8 '' 'it'\''s' 'a\b' 'é' '$HOME')");
}

TEST(CommandLine, WritesBytesThatAreNoTextSoThatBashReadsThemBack) {
  const std::vector<std::string> arguments{"a\xff'\\b\n"};
  EXPECT_EQ(CommandLine(arguments), R"($'a\xFF\'\\b\x0A')");
}

}  // namespace
}  // namespace weir::record
