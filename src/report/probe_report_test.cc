#include "report/probe_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html.h"
#include "report/markdown.h"

namespace weir::report {
namespace {

using results::StorageProbeResult;
using testing::HasSubstr;
using testing::Not;

StorageProbeResult ThreePhases() {
  StorageProbeResult etl{.phase = "etl", .etl = StorageProbeResult::Etl{}};
  etl.etl->images_per_s = 812;
  etl.etl->bottleneck = {.stage = "decode", .share = 0.7};
  etl.verdict.verdict = "VALID";
  StorageProbeResult train{.phase = "train", .train = StorageProbeResult::Train{}};
  train.train->profile = "resnet50-h100";
  train.train->step_ms = 224;
  train.train->accelerators = {.value = 3, .low = 2, .high = 4};
  train.train->units = {{.path = "/a", .samples_per_s = {1000}, .share = {}},
                        {.path = "/b", .samples_per_s = {1700}, .share = {{0.7, 0.6, 0.8}}}};
  train.train->latency = {.added_us = 180, .reads_in_flight_enough = 16, .levels = {{.reads_in_flight = 16}}};
  train.reads.read_us.p50 = 123;
  train.verdict.verdict = "VALID";
  StorageProbeResult infer{.phase = "infer", .infer = StorageProbeResult::Infer{}};
  infer.infer->frames = {.planned = 200, .in_time_percent = 99.5};
  infer.verdict.verdict = "INVALID";
  StorageProbeResult all{.phase = "all"};
  all.phases = {etl, train, infer};
  all.verdict = {.verdict = "INVALID", .reasons = {{.reason = "errors", .evidence = "infer: <b>x</b>"}}};
  return all;
}

TEST(ProbeDocument, HasThePhasesSideBySide) {
  const std::string text = ToMarkdown(ProbeDocument(ThreePhases()));
  EXPECT_THAT(text, HasSubstr("| Preparation | Training | Inference |"));
  EXPECT_THAT(text, HasSubstr("feeds 3 accelerators of resnet50-h100"));
  EXPECT_THAT(text, HasSubstr("180 us more do not matter from 16 reads in flight on"));
  EXPECT_THAT(text, HasSubstr("0.7 (0.6 to 0.8)"));
}

TEST(ProbeDocument, EscapesWhatOthersWrote) {
  const std::string html = ToHtml(ProbeDocument(ThreePhases()));
  EXPECT_THAT(html, HasSubstr("infer: &lt;b&gt;x"));
  EXPECT_THAT(html, Not(HasSubstr("<b>x</b>")));
}

TEST(ProbeDocument, OfOnePhaseHasOneColumn) {
  const StorageProbeResult one = ThreePhases().phases[1];
  EXPECT_THAT(ToMarkdown(ProbeDocument(one)), HasSubstr("Training"));
  EXPECT_THAT(ToMarkdown(ProbeDocument(one)), Not(HasSubstr("Preparation")));
}

}  // namespace
}  // namespace weir::report
