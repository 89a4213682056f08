#include "load/validate/validate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/json_path.h"

namespace weir::load {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

// A closed loop of two, two runs of a second; one request of the second run was answered after its end.
constexpr const char* kGood = R"({
  "schema_version": 1, "model": "m", "protocol": "http", "batch": 4, "claim": {"percentile": 50},
  "levels": [{
    "load_model": "closed", "concurrency": 2, "mode": "async",
    "verdict": {"throughput": "VALID", "latency": "SUSPECT"},
    "reasons": [{"reason": "steal", "about": ["latency"], "evidence": "steal 3 %, limit 1 %"}],
    "throughput_per_s": 999.5, "rows_per_s": 3998, "repeats": 2, "measured_s": 2,
    "planned": 2001, "answered": 2000, "failed": 1, "unsent": 0,
    "response_ms": {"mean": 2, "standard_deviation": 0.5, "min": 1, "p50": 2, "p90": 3, "p95": 3, "p99": 4,
                    "max": 5, "n": 2000, "intervals_95": {"p50": [1.9, 2.1], "p99": [3.5, 4.5]}},
    "service_ms": {"mean": 1.9, "min": 1, "p50": 1.9, "p90": 3, "p95": 3, "p99": 4, "max": 5, "n": 2000},
    "first_byte_ms": {"mean": 1.5, "min": 1, "p50": 1.5, "p90": 3, "p95": 3, "p99": 4, "max": 5, "n": 2000},
    "slip_ms": {"mean": 0.1, "min": 0, "p50": 0.1, "p90": 0.1, "p95": 0.1, "p99": 0.1, "max": 1, "n": 2001},
    "errors": {"timeout": 1},
    "runs": [
      {"throughput_per_s": 1000, "measured_s": 1, "answered": 1000, "planned": 1001, "warm_up_s": 1,
       "warm_up_requests": 900,
       "response_ms": {"mean": 2, "min": 1, "p50": 2, "p90": 3, "max": 5, "n": 1000}},
      {"throughput_per_s": 999, "measured_s": 1, "answered": 1000, "planned": 1000, "warm_up_s": 1,
       "warm_up_requests": 900,
       "response_ms": {"mean": 2, "min": 1, "p50": 2, "p90": 3, "max": 5, "n": 1000}}]
  }],
  "interrupted": false,
  "provenance": {"host": "vm", "build_id": "76588f950407", "build_dirty": false, "command": "weir load m"}
})";

// Where its time went, and what it used.
constexpr const char* kAccounts = R"({
    "server_ms": {"queue": 0.2, "compute_input": 0.1, "compute_infer": 0.5, "compute_output": 0.1,
                  "request": 1, "outside": 0.9, "rows_per_batch": 2},
    "split_ms": {"slip": 0.1, "client_receive": 0.4, "wire_and_wait": 0.5, "queue": 0.2, "compute_input": 0.1,
                 "compute_infer": 0.5, "compute_output": 0.1, "server_rest": 0.1},
    "slowest": {"above_percentile": 99, "n": 20, "mean_ms": 4.5,
                "split_ms": {"slip": 0.1, "client_receive": 0.3, "wire_and_wait": 1.1, "queue": 2,
                             "compute_input": 0.1, "compute_infer": 0.5, "compute_output": 0.1,
                             "server_rest": 0.3}},
    "resources": {"app_cpu": {"mean": 0.5, "max": 1, "min": 0.1}, "steal_percent": 3, "throttled_s": 0.005,
                  "gpus": [{"name": "g", "percent": {"mean": 60, "max": 100, "min": 0}}],
                  "wall_s": 1, "samples": 10, "period_ms": 100},
    "server_resources": {"server_metrics": {"cpu": {"mean": 1, "max": 1, "min": 1}, "samples": 2},
                         "wall_s": 1, "samples": 10, "period_ms": 100}
})";

Json Good() { return ParseJson(kGood).value(); }

Json Accounted() {
  Json json = Good();
  json["levels"][0].update(ParseJson(kAccounts).value());
  return json;
}

Json With(Json json, const std::string& pointer, const Json& value) {
  PlaceOf(json, pointer) = value;
  return json;
}

Json Without(Json json, const std::string& pointer) {
  const size_t last = pointer.rfind('/');
  Json& above = PlaceOf(json, pointer.substr(0, last));
  const std::string key = pointer.substr(last + 1);
  if (above.is_array())
    above.erase(std::stoul(key));
  else
    above.erase(key);
  return json;
}

std::vector<std::string> Rules(const Json& json) {
  const auto findings = Validate(json);
  EXPECT_TRUE(findings) << findings.error().message;
  std::vector<std::string> rules;
  if (findings) {
    for (const Finding& finding : *findings) {
      EXPECT_FALSE(finding.what.empty());
      rules.push_back(fmt::format("{}{}", finding.rule, finding.fatal ? "" : " (note)"));
    }
  }
  return rules;
}

// Breaks the good result in one place.
void ExpectBroken(const std::string& pointer, const Json& value, const std::vector<std::string>& rules) {
  EXPECT_THAT(Rules(With(Good(), pointer, value)), UnorderedElementsAreArray(rules)) << pointer << value;
}

TEST(Validate, FindsNothingInAGoodResult) { EXPECT_THAT(Rules(Good()), IsEmpty()); }

TEST(Validate, FindsCountsThatDoNotAddUp) {
  ExpectBroken("/levels/0/failed", 2, {"counts", "error-kinds"});
  ExpectBroken("/levels/0/runs/1/planned", 999, {"counts", "runs"});
  ExpectBroken("/levels/0/errors/timeout", 2, {"error-kinds"});
  ExpectBroken("/levels/0/errors/bad luck", 0, {"error-kinds"});
  ExpectBroken("/levels/0/errors", {{"unsent", 1}}, {"error-kinds"});
}

TEST(Validate, FindsDistributionsOfOtherNumbersOfRequests) {
  ExpectBroken("/levels/0/response_ms/n", 1999, {"samples"});
  ExpectBroken("/levels/0/service_ms/n", 1999, {"samples"});
  ExpectBroken("/levels/0/first_byte_ms/n", 1999, {"samples"});
  ExpectBroken("/levels/0/slip_ms/n", 2000, {"samples"});
  ExpectBroken("/levels/0/runs/0/response_ms/n", 999, {"samples"});
}

TEST(Validate, FindsPercentilesOutOfOrder) {
  ExpectBroken("/levels/0/response_ms/p90", 3.5, {"order", "runs"});
  ExpectBroken("/levels/0/slip_ms/min", 0.11, {"order", "order"});  // above p50 and above the mean
  ExpectBroken("/levels/0/first_byte_ms/max", 3.9, {"order"});
  ExpectBroken("/levels/0/first_byte_ms/mean", 5.1, {"order"});
  ExpectBroken("/levels/0/response_ms/intervals_95/p99", {4.1, 4.5}, {"order"});
  ExpectBroken("/levels/0/runs/0/response_ms/p50", 0.5, {"order"});
}

TEST(Validate, FindsAPercentileThatItsSamplesDoNotSupport) {
  ExpectBroken("/levels/0/slip_ms/p99_9", 0.5, {"support"});
  ExpectBroken("/levels/0/runs/0/response_ms/p99_9", 4, {"support"});
}

TEST(Validate, FindsAServiceTimeAboveTheResponseTime) {
  ExpectBroken("/levels/0/service_ms/mean", 2.01, {"service"});
  ExpectBroken("/levels/0/service_ms/p50", 2.01, {"service"});
  ExpectBroken("/levels/0/service_ms/p50", 2.001, {});  // no wider than a histogram's bucket
  ExpectBroken("/levels/0/service_ms/max", 6, {"service"});
}

TEST(Validate, FindsALevelThatIsNotTheSumOfItsRuns) {
  ExpectBroken("/levels/0/measured_s", 3, {"runs"});
  ExpectBroken("/levels/0/runs/1/measured_s", 2, {"runs", "throughput", "throughput"});
  EXPECT_THAT(Rules(With(Good(), "/levels/0/runs", Json::array())), Contains("runs"));
}

TEST(Validate, FindsAThroughputThatIsNotAnswersOverTime) {
  ExpectBroken("/levels/0/throughput_per_s", 1000, {"throughput", "throughput"});  // of the runs; rows
  ExpectBroken("/levels/0/rows_per_s", 999.5, {"throughput"});
  ExpectBroken("/levels/0/concurrency", 0, {"throughput"});
  Json result = With(Good(), "/levels/0/runs/1/throughput_per_s", 999.5);  // half an answer
  result = With(result, "/levels/0/throughput_per_s", 999.75);
  EXPECT_THAT(Rules(With(result, "/levels/0/rows_per_s", 3999)), UnorderedElementsAreArray({"throughput"}));
}

TEST(Validate, ALoopThatIsOpenMayAnswerAnyNumberAfterItsEnd) {
  Json result = With(Good(), "/levels/0/load_model", "open");
  result = With(result, "/levels/0/runs/1/throughput_per_s", 500);
  result = With(result, "/levels/0/throughput_per_s", 750);
  EXPECT_THAT(Rules(With(result, "/levels/0/rows_per_s", 3000)), IsEmpty());
}

// With what the generator did in the second run, in an open loop.
Json OpenWith(int64_t sent, int64_t late, double busiest_thread) {
  const Json generator = {
      {"sent", sent}, {"late", late}, {"sent_per_s", sent}, {"busiest_thread", busiest_thread}};
  return With(With(Good(), "/levels/0/load_model", "open"), "/levels/0/runs/1/generator", generator);
}

Json Told(Json json, const std::string& reason, const std::string& throughput, const std::string& latency) {
  json = With(json, "/levels/0/verdict", {{"throughput", throughput}, {"latency", latency}});
  return With(json, "/levels/0/reasons",
              {{{"reason", reason}, {"about", {"throughput", "latency"}}, {"evidence", "as judged"}}});
}

TEST(Validate, FindsAGeneratorThatWasLateOrBusyAndDidNotSaySo) {
  EXPECT_THAT(Rules(OpenWith(1000, 10, 0.5)), IsEmpty());
  EXPECT_THAT(Rules(OpenWith(1001, 0, 0)), ElementsAre("generator"));  // more than were planned
  EXPECT_THAT(Rules(OpenWith(10, 11, 0)), ElementsAre("generator"));
  EXPECT_THAT(Rules(OpenWith(1000, 11, 0)), ElementsAre("generator"));
  EXPECT_THAT(Rules(Told(OpenWith(1000, 11, 0), "generator-late", "SUSPECT", "INVALID")), IsEmpty());
  EXPECT_THAT(Rules(Told(OpenWith(1000, 11, 0), "generator-late", "SUSPECT", "SUSPECT")),
              ElementsAre("generator"));
  EXPECT_THAT(Rules(With(OpenWith(1000, 11, 0), "/levels/0/load_model", "closed")), IsEmpty());
  EXPECT_THAT(Rules(OpenWith(1000, 0, 0.6)), ElementsAre("generator"));
  EXPECT_THAT(Rules(Told(OpenWith(1000, 0, 0.6), "generator-busy", "SUSPECT", "SUSPECT")), IsEmpty());
  EXPECT_THAT(Rules(Told(OpenWith(1000, 0, 0.9), "generator-busy", "SUSPECT", "SUSPECT")),
              ElementsAre("generator"));
}

TEST(Validate, FindsPlacesThatStoodEmptyAndAreNotTold) {
  const auto empty = [](double share) {
    return With(With(OpenWith(1000, 0, 0), "/levels/0/load_model", "closed"),
                "/levels/0/runs/1/generator/empty_share", share);
  };
  EXPECT_THAT(Rules(empty(0.05)), IsEmpty());
  EXPECT_THAT(Rules(empty(0.06)), ElementsAre("generator"));
  EXPECT_THAT(Rules(Told(empty(0.06), "generator-late", "SUSPECT", "SUSPECT")), IsEmpty());
  EXPECT_THAT(Rules(Told(empty(0.3), "generator-late", "SUSPECT", "SUSPECT")), ElementsAre("generator"));
}

TEST(Validate, FindsASlipThatIsLargeForTheResponsesOfTheOnlyRun) {
  Json result = With(Good(), "/levels/0/load_model", "open");
  result = With(result, "/levels/0/runs", Json::array({result["levels"][0]["runs"][0]}));
  EXPECT_THAT(Rules(With(result, "/levels/0/slip_ms/p99", 0.1)), Not(Contains("generator")));
  result = With(result, "/levels/0/slip_ms/p99", 0.11);
  EXPECT_THAT(Rules(result), Contains("generator"));
  EXPECT_THAT(Rules(Told(result, "generator-late", "VALID", "SUSPECT")), Not(Contains("generator")));
}

TEST(Validate, HoldsAGeneratorAgainstWhatItCanSendWhereItWasAsked) {
  EXPECT_THAT(Rules(With(OpenWith(1000, 0, 0.3), "/generator/ceiling_per_s", 1500)),
              ElementsAre("generator"));
  EXPECT_THAT(Rules(With(OpenWith(1000, 0, 0.3), "/generator/ceiling_per_s", 5000)), IsEmpty());
  EXPECT_THAT(Rules(With(OpenWith(1000, 0, 0.2), "/generator/ceiling_per_s", 1500)), IsEmpty());
}

TEST(Validate, FindsARateThatWasMissedAndNotTold) {
  Json result = OpenWith(1000, 0, 0);
  for (const auto& [key, value] :
       {std::pair("runs/1/throughput_per_s", 980), {"throughput_per_s", 990}, {"rows_per_s", 3960}})
    result = With(result, fmt::format("/levels/0/{}", key), value);
  EXPECT_THAT(Rules(result), ElementsAre("generator"));
  EXPECT_THAT(Rules(Told(result, "rate-missed", "SUSPECT", "INVALID")), IsEmpty());
  EXPECT_THAT(Rules(With(result, "/levels/0/runs/1/by_count", true)), IsEmpty());
}

TEST(Validate, AResultThatSaysWhyItIsInvalidKeepsTheRules) {
  Json result = With(Good(), "/levels/0/verdict", {{"throughput", "INVALID"}, {"latency", "INVALID"}});
  result = With(result, "/levels/0/reasons/0",
                {{"reason", "throttling"}, {"about", {"throughput", "latency"}}, {"evidence", "held back"}});
  EXPECT_THAT(Rules(result), IsEmpty());
}

TEST(Validate, FindsNothingInGoodAccounts) { EXPECT_THAT(Rules(Accounted()), IsEmpty()); }

TEST(Validate, TakesTheTimeOfReceivingForAPartWhereItIsTold) {
  Json json = With(Accounted(), "/levels/0/server_ms/receive", 0.1);
  json = With(json, "/levels/0/split_ms/receive", 0.1);
  EXPECT_THAT(Rules(json), ElementsAre("split", "split"))
      << "the sum and the rest are what they were without";
  json = With(json, "/levels/0/split_ms/server_rest", 0);
  EXPECT_THAT(Rules(json), IsEmpty());
  EXPECT_THAT(Rules(With(json, "/levels/0/server_ms/receive", 0.2)), ElementsAre("split", "split"));
}

TEST(Validate, FindsSlowOnesThatAreNotTheirs) {
  const auto rules = [](const std::string& key, const Json& value) {
    return Rules(With(Accounted(), "/levels/0/slowest/" + key, value));
  };
  EXPECT_THAT(rules("mean_ms", 4.6), ElementsAre("slowest"));
  EXPECT_THAT(rules("split_ms/queue", 2.1), ElementsAre("slowest"));
  EXPECT_THAT(rules("n", 21), ElementsAre("slowest"));
  EXPECT_THAT(rules("above_percentile", 99.9), ElementsAre("support", "claim"));
  EXPECT_THAT(rules("above_percentile", 200), ElementsAre("support", "claim"));
  // Faster than all, and slower than the slowest.
  Json json = With(Accounted(), "/levels/0/slowest/mean_ms", 1);
  EXPECT_THAT(Rules(With(json, "/levels/0/slowest/split_ms/wire_and_wait", -2.4)), ElementsAre("slowest"));
  json = With(Accounted(), "/levels/0/slowest/mean_ms", 5.5);
  EXPECT_THAT(Rules(With(json, "/levels/0/slowest/split_ms/wire_and_wait", 2.1)), ElementsAre("slowest"));
}

TEST(Validate, FindsASplitThatIsNotTheWhole) {
  const std::string split = "/levels/0/split_ms/";
  EXPECT_THAT(Rules(With(Accounted(), split + "wire_and_wait", 0.6)), ElementsAre("split"));
  EXPECT_THAT(Rules(With(Accounted(), split + "queue", 0.3)), ElementsAre("split", "split"))
      << "nor is it the server's";
  EXPECT_THAT(Rules(With(With(Accounted(), split + "slip", 0.2), split + "wire_and_wait", 0.4)),
              ElementsAre("split"))
      << "the sum is right, and the part is not";
  EXPECT_THAT(Rules(With(With(Accounted(), split + "client_receive", 0.3), split + "wire_and_wait", 0.6)),
              ElementsAre("split"));
  EXPECT_THAT(Rules(Without(Accounted(), "/levels/0/split_ms")), IsEmpty()) << "an older result has none";
  EXPECT_THAT(Rules(Without(Accounted(), "/levels/0/server_ms")), ElementsAre("split"));
}

TEST(Validate, TellsOfPartsBelowZero) {
  Json json = With(Accounted(), "/levels/0/server_ms/request", 2);
  json = With(json, "/levels/0/server_ms/outside", -0.1);
  json = With(json, "/levels/0/split_ms/server_rest", 1.1);
  EXPECT_THAT(Rules(With(json, "/levels/0/split_ms/wire_and_wait", -0.5)), ElementsAre("split (note)"));
}

TEST(Validate, WantsAServerThatOthersUsedToBeTold) {
  const auto shared = [](int64_t counted, int64_t ours, int64_t others) {
    return With(Good(), "/levels/0/server_requests",
                {{"counted", counted}, {"ours_at_most", ours}, {"others_at_least", others}});
  };
  EXPECT_THAT(Rules(shared(2010, 2010, 0)), IsEmpty());
  EXPECT_THAT(Rules(shared(2010, 2000, 10)), IsEmpty()) << "below the limit";
  EXPECT_THAT(Rules(shared(2010, 2020, 0)), ElementsAre("server"));
  EXPECT_THAT(Rules(shared(2010, 2000, 20)), ElementsAre("server"));
  EXPECT_THAT(Rules(shared(4000, 2000, 2000)), ElementsAre("server"));
  Json told = shared(4000, 2000, 2000);
  told["levels"][0]["verdict"] = {{"throughput", "INVALID"}, {"latency", "INVALID"}};
  told["levels"][0]["reasons"] = {
      {{"reason", "server-shared"}, {"about", {"throughput", "latency"}}, {"evidence", "2000 of 4000"}}};
  EXPECT_THAT(Rules(told), IsEmpty());
  told["levels"][0].update(ParseJson(kAccounts).value());
  told["levels"][0].erase("resources");
  EXPECT_THAT(Rules(told), ElementsAre("server")) << "server_ms is of others' requests, too";
}

TEST(Validate, LetsTheClientsSendingOverlapTheServersTime) {
  Json json =
      With(Accounted(), "/levels/0/client_send_ms", {{"mean", 0.6}, {"min", 0.6}, {"max", 0.6}, {"n", 2000}});
  // 0.5 ms lie between the two; 0.6 ms of sending leave nothing of them, and overlap for the rest.
  json = With(json, "/levels/0/split_ms/client_send", 0.5);
  json = With(json, "/levels/0/split_ms/wire_and_wait", 0.0);
  EXPECT_THAT(Rules(json), Not(Contains("split")));
}

TEST(Validate, FindsAServersAccountThatIsNotOfTheServiceTime) {
  EXPECT_THAT(Rules(With(Accounted(), "/levels/0/server_ms/outside", 1)), ElementsAre("server"));
}

TEST(Validate, FindsResourcesThatCannotBe) {
  const std::string resources = "/levels/0/resources/";
  EXPECT_THAT(Rules(With(Accounted(), resources + "app_cpu/mean", 2)), ElementsAre("resources"));
  EXPECT_THAT(Rules(With(Accounted(), resources + "gpus/0/percent/max", 101)), ElementsAre("resources"));
  EXPECT_THAT(Rules(With(Accounted(), resources + "samples", 0)), ElementsAre("resources"));
  EXPECT_THAT(Rules(With(Accounted(), "/levels/0/server_resources/server_metrics/cpu/min", 2)),
              ElementsAre("resources"));
}

TEST(Validate, FindsAMachineWhoseTroubleIsNotTold) {
  const Json other = With(Accounted(), "/levels/0/reasons/0/reason", "foreign-cpu");
  EXPECT_THAT(Rules(other), ElementsAre("machine")) << "3 % of steal";
  EXPECT_THAT(Rules(With(other, "/levels/0/resources/steal_percent", 0.5)), IsEmpty());
  EXPECT_THAT(Rules(With(Accounted(), "/levels/0/resources/throttled_s", 0.2)), ElementsAre("machine"));
}

TEST(Validate, FindsVerdictsAndReasonsOutsideTheirLists) {
  ExpectBroken("/levels/0/verdict/latency", "valid", {"verdict"});
  ExpectBroken("/levels/0/verdict/latency", "skipped", {"verdict"});
  ExpectBroken("/levels/0/reasons/0/reason", "bad luck", {"reasons"});
  ExpectBroken("/levels/0/reasons/0/about/1", "taste", {"reasons"});
}

TEST(Validate, FindsClaimsAndReasonsThatDoNotBelongTogether) {
  ExpectBroken("/levels/0/verdict/throughput", "INVALID", {"reasons"});  // and no reason
  ExpectBroken("/levels/0/verdict/latency", "VALID", {"reasons"});       // yet a reason
  ExpectBroken("/levels/0/reasons", Json::array(), {"reasons"});         // SUSPECT, and no reason
  ExpectBroken("/levels/0/reasons/0/about", Json::array(),
               {"reasons", "reasons"});  // the same, about nothing
}

TEST(Validate, FindsTooManyErrorsThatAreNotInvalid) {
  Json result = With(Good(), "/levels/0/planned", 2003);
  result = With(result, "/levels/0/failed", 3);
  result = With(result, "/levels/0/errors/timeout", 3);
  result = With(result, "/levels/0/slip_ms/n", 2003);
  result = With(result, "/levels/0/runs/0/planned", 1003);
  EXPECT_THAT(Rules(result), UnorderedElementsAreArray({"errors", "errors"}));  // level and run
  result = With(result, "/levels/0/verdict", {{"throughput", "INVALID"}, {"latency", "INVALID"}});
  result = With(result, "/levels/0/reasons/0/about", {"throughput", "latency"});
  EXPECT_THAT(Rules(result), UnorderedElementsAreArray({"errors", "errors", "verdict", "verdict"}))
      << "for a reason that makes nothing INVALID";
  EXPECT_THAT(Rules(With(result, "/levels/0/reasons/0/reason", "errors")), IsEmpty());
}

TEST(Validate, FindsAValidClaimOfTooFewAnswers) {
  Json result = Good();
  Json run = {{"throughput_per_s", 29},
              {"measured_s", 1},
              {"answered", 29},
              {"planned", 29},
              {"response_ms", {{"mean", 2}, {"min", 1}, {"p50", 2}, {"max", 5}, {"n", 29}}}};
  result = With(result, "/levels/0/runs/1", run);
  result = With(result, "/levels/0/planned", 1030);
  result = With(result, "/levels/0/answered", 1029);
  for (const char* times : {"response_ms", "service_ms", "first_byte_ms"})
    result = With(result, fmt::format("/levels/0/{}/n", times), 1029);
  result = With(result, "/levels/0/slip_ms/n", 1030);
  result = With(result, "/levels/0/throughput_per_s", 514.5);
  EXPECT_THAT(Rules(With(result, "/levels/0/rows_per_s", 2058)),
              UnorderedElementsAreArray({"too-few-samples"}));
}

TEST(Validate, FindsWhatTheResultIsFromUntold) {
  EXPECT_THAT(Rules(Without(Good(), "/provenance")), UnorderedElementsAreArray({"provenance"}));
  ExpectBroken("/provenance", {1, 2}, {"provenance"});
  ExpectBroken("/provenance/command", "", {"provenance"});
  ExpectBroken("/provenance/host", 3, {"provenance"});
  ExpectBroken("/provenance/build_id", "unknown", {"build (note)"});
  ExpectBroken("/provenance/build_dirty", true, {"build (note)"});
  ExpectBroken("/interrupted", true, {"interrupted (note)"});
  ExpectBroken("/levels", Json::array(), {"levels"});
}

TEST(Validate, FindsStandardDeviationsThatCannotBe) {
  ExpectBroken("/levels/0/response_ms/standard_deviation", 1.8, {"deviation"});
  ExpectBroken("/levels/0/response_ms/standard_deviation", 0.01, {"deviation"});
  ExpectBroken("/levels/0/throughput_standard_error", 0.5, {});
  ExpectBroken("/levels/0/throughput_standard_error", 0.1, {"deviation"});
  Json result = Good();
  for (int run = 0; run < 2; ++run)
    result = With(result, fmt::format("/levels/0/runs/{}/response_ms/standard_deviation", run), 0.5);
  EXPECT_THAT(Rules(result), ElementsAre("deviation")) << "1999 and not 1998 degrees of freedom";
  result = With(result, "/levels/0/response_ms/standard_deviation", 0.5 * std::sqrt(1998.0 / 1999));
  EXPECT_THAT(Rules(result), IsEmpty());
}

TEST(Validate, FindsIntervalsThatTheFiguresDoNotAllow) {
  const std::string intervals = "/levels/0/response_ms/intervals_95/";
  ExpectBroken(intervals + "p99", {2.5, 4.5}, {"intervals"});  // below p95
  ExpectBroken(intervals + "p99", {3.5, 5.5}, {"intervals"});  // above max
  ExpectBroken(intervals + "mean", {2, 2}, {});                // both runs have a mean of 2
  ExpectBroken(intervals + "mean", {1.9, 2.1}, {"intervals"});
  ExpectBroken(intervals + "mean", {1.9, 2.2}, {"intervals", "intervals"});
}

// Three times what sending took may lie outside of the server.
TEST(Validate, TakesFromIntervalsWhatIsNotOfChance) {
  const Json sending = ParseJson(R"({"mean": 0.02, "min": 0.01, "p99": 0.1, "max": 0.2, "n": 2000})").value();
  const std::string intervals = "/levels/0/response_ms/intervals_95/";
  const Json result = With(With(Good(), intervals + "mean", {1.94, 2}), intervals + "p99", {2.8, 4.5});
  EXPECT_THAT(Rules(With(result, "/levels/0/client_send_ms", sending)), IsEmpty());
  EXPECT_THAT(Rules(result), UnorderedElementsAre("intervals", "intervals", "intervals"));
}

TEST(Validate, FindsSendingThatIsNotAPartOfTheTime) {
  const std::string split = "/levels/0/split_ms/";
  Json json = With(With(Accounted(), split + "client_send", 0.1), split + "wire_and_wait", 0.4);
  EXPECT_THAT(Rules(json), ElementsAre("split")) << "there is no client_send_ms";
  const Json sending = ParseJson(R"({"mean": 0.1, "min": 0.01, "max": 0.2, "n": 2000})").value();
  json = With(json, "/levels/0/client_send_ms", sending);
  EXPECT_THAT(Rules(json), IsEmpty());
  EXPECT_THAT(Rules(With(json, split + "client_send", 0.2)), ElementsAre("split", "split"));
  EXPECT_THAT(Rules(With(json, "/levels/0/client_send_ms/n", 2001)),
              UnorderedElementsAre("samples", "split"));
  EXPECT_THAT(Rules(With(json, "/levels/0/client_send_ms/max", 0.05)), ElementsAre("order"));
}

TEST(Validate, FindsALevelThatHasNotTheTimesOfItsRuns) {
  ExpectBroken("/levels/0/repeats", 3, {"runs"});
  ExpectBroken("/levels/0/response_ms/mean", 2.2, {"runs"});
  ExpectBroken("/levels/0/response_ms/max", 4.8, {"runs", "service"});
  Json result = Without(Without(Good(), "/levels/0/runs/1"), "/levels/0/repeats");
  for (const auto& [key, value] : {std::pair("p50", 2.0), {"p90", 3}, {"p95", 3}, {"p99", 4}})
    result = With(result, fmt::format("/levels/0/runs/0/response_ms/{}", key), value);
  const size_t before = Rules(result).size();  // its counts are those of two runs
  EXPECT_THAT(Rules(With(result, "/levels/0/runs/0/response_ms/p99", 3.9)), ::testing::SizeIs(before + 1));
}

TEST(Validate, FindsAVerdictThatItsReasonsDoNotAllow) {
  ExpectBroken("/levels/0/reasons/0/reason", "errors", {"verdict"});  // never SUSPECT
  Json result = With(Good(), "/levels/0/verdict/latency", "INVALID");
  EXPECT_THAT(Rules(result), ElementsAre("verdict")) << "for steal alone";
}

TEST(Validate, FindsAClaimThatTheFiguresDoNotAllow) {
  ExpectBroken("/claim/percentile", 99.9, {"claim"});  // 2,000 answers do not support it
  ExpectBroken("/claim/percentile", 100, {"claim"});
  ExpectBroken("/claim/latency_threshold_ms", 3, {"claim"});    // and no answer
  ExpectBroken("/levels/0/below_threshold", "yes", {"claim"});  // and no threshold
  const auto rules = [](double threshold_ms, const char* answer) {
    const Json claim = With(Good(), "/claim/latency_threshold_ms", threshold_ms);
    return Rules(With(claim, "/levels/0/below_threshold", answer));
  };
  EXPECT_THAT(rules(4.5, "yes"), IsEmpty());
  EXPECT_THAT(rules(4.5, "no"), ElementsAre("claim"));
  EXPECT_THAT(rules(4.5, "perhaps"), ElementsAre("claim"));
  EXPECT_THAT(rules(1.5, "yes"), ElementsAre("claim"));
  EXPECT_THAT(rules(1.5, "no"), IsEmpty());
}

TEST(Validate, SaysWhereARuleIsBroken) {
  const auto findings = Validate(With(Good(), "/levels/0/runs/1/response_ms/n", 7)).value();
  EXPECT_THAT(findings, Contains(::testing::Field(&Finding::where, "levels[0].runs[1].response_ms")));
}

TEST(Validate, NamesTheKeyThatIsMissing) {
  const auto message = [](const std::string& pointer) {
    const auto findings = Validate(Without(Accounted(), pointer));
    EXPECT_FALSE(findings) << pointer;
    return findings ? "" : findings.error().message;
  };
  EXPECT_THAT(message("/levels"), HasSubstr("\"levels\""));
  EXPECT_THAT(message("/levels/0/planned"), HasSubstr("levels[0]: key \"planned\""));
  EXPECT_THAT(message("/levels/0/response_ms/n"), HasSubstr("levels[0]: response_ms: key \"n\""));
  EXPECT_THAT(message("/levels/0/runs/1/response_ms/max"),
              HasSubstr("levels[0]: runs[1]: response_ms: key \"max\""));
  EXPECT_THAT(message("/levels/0/reasons/0/evidence"), HasSubstr("reasons[0]: key \"evidence\""));
  EXPECT_THAT(message("/levels/0/split_ms/slip"), HasSubstr("levels[0]: split_ms: key \"slip\""));
  EXPECT_THAT(message("/levels/0/resources/gpus/0/percent/max"),
              HasSubstr("levels[0]: resources: gpus[0]: percent: key \"max\""));
  EXPECT_THAT(message("/interrupted"), HasSubstr("\"interrupted\""));
}

// Every value of the tree, replaced by each of `others`.
void ReplaceEach(const Json& tree, const std::string& at, const std::vector<Json>& others) {
  const Json whole = Accounted();
  for (const Json& other : others) {
    Json changed = whole;
    PlaceOf(changed, at) = other;
    const auto findings = Validate(changed);
    const bool version = at == "/schema_version" || at.empty();
    if (!findings && !(version && findings.error().code == ErrorCode::kUnsupported)) {
      EXPECT_EQ(findings.error().code, ErrorCode::kCorrupt) << at;
    }
  }
  if (!tree.is_structured()) return;
  for (auto item = tree.begin(); item != tree.end(); ++item) {
    const std::string key = tree.is_array() ? std::to_string(item - tree.begin()) : item.key();
    ReplaceEach(*item, at + "/" + key, others);
    const auto without = Validate(Without(whole, at + "/" + key));
    if (!without && key != "schema_version") {
      EXPECT_EQ(without.error().code, ErrorCode::kCorrupt) << at << key;
    }
  }
}

TEST(Validate, TakesAnyJsonAnywhere) {
  const std::vector<Json> others = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    INT64_MAX,
                                    UINT64_MAX,
                                    1e308,
                                    -0.5,
                                    std::numeric_limits<double>::quiet_NaN(),
                                    std::numeric_limits<double>::infinity(),
                                    "",
                                    "\x01",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({nullptr, 1}),
                                    Json{{"n", 3}}};
  ReplaceEach(Accounted(), "", others);
}

}  // namespace
}  // namespace weir::load
