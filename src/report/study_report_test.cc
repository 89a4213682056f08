#include "report/study_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/csv.h"
#include "base/file.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/study_csv.h"
#include "report/study_text.h"
#include "report/table2.h"
#include "report/testing/study_result.h"
#include "report/write.h"

namespace weir::report {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string TextOf(const Section& section) { return ToMarkdown({.sections = {section}}); }

template <typename Kind>
const Kind& First(const Section& section) {
  for (const Block& block : section.blocks) {
    if (const auto* found = std::get_if<Kind>(&block)) return *found;
  }
  ADD_FAILURE() << "no such block";
  static const Kind kNone{};
  return kNone;
}

TEST(StudyDocument, BeginsWithTheAnswer) {
  const StudyResult result = SmallResult();
  const Document document = StudyDocument(result);
  EXPECT_EQ(document.title, "Which <batch>?");
  ASSERT_FALSE(document.sections.empty());
  EXPECT_EQ(document.sections[0].title, "The answer");
  const auto& first = std::get<Paragraph>(document.sections[0].blocks[0]);
  EXPECT_EQ(first.tone, Paragraph::Tone::kAnswer);
  EXPECT_EQ(
      first.text,
      "batch 8 is the configuration with the highest throughput that meets the targets (p99 at most 50 ms): "
      "110.5 (108.8 to 112.2) images/s over 2 trials; SUSPECT: 1 of them, 2.5 for a million pictures. The "
      "runner-up is batch 1, at 0.906 (0.9 to 0.912) of its throughput: the difference is significant "
      "(adjusted p 0.001). Its bottleneck is decode, reading and preparing the pictures, on the "
      "application's CPU (in 1 of 2 trials); relieving it gives at most 1.5 (1.4 to 1.6) times the rate, "
      "then "
      "infer holds back.");
}

TEST(AnswerText, HasTheAnswerTheConfigurationsAndTheFiles) {
  const std::string text = AnswerText(SmallResult(), "out");
  EXPECT_THAT(text, HasSubstr("batch 8 is the configuration with the highest throughput"));
  EXPECT_THAT(text, HasSubstr("bottleneck"));
  EXPECT_THAT(text, HasSubstr("out/report.html, report.md; every trial: out/results.csv"));
}

TEST(IntervalText, BeginsAtZeroWhereNoTrialWasBelow) {
  results::Figures figures{.n = 2, .mean = 3.0, .low = -22.4, .high = 28.4, .min = 1.0};
  EXPECT_EQ(IntervalText(&figures), "3 (0 to 28.4)");
  figures.min = -1.0;
  EXPECT_EQ(IntervalText(&figures), "3 (-22.4 to 28.4)");
}

TEST(AnswerSection, SaysWhatStandsAgainstIt) {
  const StudyResult result = SmallResult();
  const std::string text = TextOf(AnswerSection(result));
  EXPECT_THAT(text, HasSubstr("The machine did not hold still"));
  EXPECT_THAT(text, HasSubstr("changed by 5 % over the study (4 % to 6 %)"));
  EXPECT_THAT(text, HasSubstr("Block 2 lies at 0.9 times the median of all (foreign-cpu in 3 of 4 trials)"));
  EXPECT_THAT(
      text, HasSubstr("1.104 (1.096 to 1.111) times the throughput of the reference (batch 1), paired in 2 "
                      "blocks; the difference is significant (adjusted p 0.001). Only a difference of 0.76 % "
                      "or more would reliably have shown"));
  EXPECT_THAT(text, HasSubstr("Repeat it with:\n\n```\nweir study s.yaml -o s\n```"));
}

TEST(AnswerSection, StatesNoDriftThatIsNotShown) {
  StudyResult result = SmallResult();
  result.drift = {.metric = "throughput_images_per_s",
                  .blocks = 3,
                  .change = 2.1,
                  .low = -0.94,
                  .high = 11.26,
                  .limit = 15.7};
  EXPECT_THAT(TextOf(AnswerSection(result)), Not(HasSubstr("hold still")));
  EXPECT_THAT(TextOf(ConditionsSection(result)),
              HasSubstr("none shown in the reference configuration's throughput over 3 blocks (limit"));
}

TEST(AnswerSection, ListsWhatCouldBeAsGood) {
  StudyResult result = SmallResult();
  result.answers[0].others[0].tested.told = results::TestedRatio::kNothing;
  result.answers[0].others[0].tested.limit = 0.11;
  const std::string text = TextOf(AnswerSection(result));
  EXPECT_THAT(text, HasSubstr("no difference shown (limit 11 %)"));
  EXPECT_THAT(text, HasSubstr("Could be as good:\n\n- batch 1: 0.906 (0.9 to 0.912) of it"));
}

TEST(AnswerSection, RanksNoConfigurationWhoseTrialsAreDisturbed) {
  StudyResult result = SmallResult();
  result.configurations[0].most_trials_valid = false;
  result.configurations[0].trials = {.suspect = 2};
  EXPECT_THAT(TextOf(AnswerSection(result)),
              HasSubstr("most of their trials are not VALID:\n\n- batch 1: 0 of 2 trials VALID"));
  result.answers.clear();
  result.no_answer = "68 of 69 trials were disturbed by other processes";
  const std::string text = TextOf(AnswerSection(result));
  EXPECT_THAT(text, HasSubstr("No answer: 68 of 69 trials were disturbed by other processes."));
  EXPECT_THAT(
      text,
      HasSubstr("when the machine is quiet (weir doctor names what disturbs it):\n\n```\nweir study s.yaml "
                "-o s --resume --wait-quiet 10m\n```"));
  EXPECT_THAT(text, Not(HasSubstr("highest")));
  result.provenance["command"] = "weir study s.yaml --no-replay -o s --resume";
  EXPECT_THAT(TextOf(AnswerSection(result)), HasSubstr("weir study s.yaml -o s --resume --wait-quiet 10m\n"));
}

TEST(AnswerSection, ComparesNoRealEngineWithAnEmulatedOne) {
  StudyResult result = SmallResult();
  StudyResult::Answer other = result.answers[0];
  other.among = "emulated accelerators";
  other.best = 0;
  other.others.clear();
  result.answers[0].among = "real engines";
  result.answers.push_back(other);
  const std::string text = TextOf(AnswerSection(result));
  EXPECT_THAT(text, HasSubstr("Among real engines: batch 8 is"));
  EXPECT_THAT(text, HasSubstr("Among emulated accelerators: batch 1 is"));
  EXPECT_THAT(text, HasSubstr("not ranked against emulated"));
}

TEST(AnswerSection, WarnsOfASingleTrial) {
  StudyResult result = SmallResult();
  EXPECT_THAT(TextOf(AnswerSection(result)), Not(HasSubstr("single trial")));
  ASSERT_EQ(result.configurations[1].metrics.all[0].first, "throughput_images_per_s");
  result.configurations[1].metrics.all[0].second.n = 1;
  EXPECT_THAT(TextOf(AnswerSection(result)), HasSubstr("A single trial does not tell"));
}

TEST(SkippedByReason, NamesEachReasonOnce) {
  StudyResult result = SmallResult();
  for (StudyResult::Configuration& one : result.configurations)
    one.skipped_why = "no podman here; install it";
  const std::vector<std::string> lines = SkippedByReason(result);
  EXPECT_THAT(lines, ElementsAre("2 configurations: no podman here; install it (batch 1; batch 8)"));
}

TEST(AnswerSection, GivesNoneWhereNoTrialCounts) {
  StudyResult result = SmallResult();
  result.answers.clear();
  EXPECT_THAT(TextOf(AnswerSection(result)), HasSubstr("No answer: no trial counts."));
}

TEST(EffectsSection, ReportsOppositeDirectionsLevelByLevel) {
  const StudyResult result = SmallResult();
  const std::string text = TextOf(EffectsSection(result));
  EXPECT_THAT(text, HasSubstr("acts in opposite directions: 1 pairs higher, 1 lower | - | 0.6 to 1.58"));
  EXPECT_THAT(text, Not(HasSubstr("1.104 (1.098 to 1.11)")));
  EXPECT_THAT(text, HasSubstr("| batch | 1 | 8 | mode: sync | higher | 1.58 (1.5 to 1.7) | 1 |"));
  EXPECT_THAT(text, HasSubstr("| mode: async | no difference shown (limit 3.1 %) | 0.99"));
  EXPECT_THAT(text, HasSubstr("| batch 8 | microservice | in-process | lower | 0.8 (0.7 to 0.9) | 2 |"));
  EXPECT_THAT(text, HasSubstr("| mode × batch | 1 | 12.5 | 0.03 | 60 % |"));
  EXPECT_THAT(text, HasSubstr("no departure from a normal distribution shown"));
  EXPECT_THAT(text, HasSubstr("| batch 8 | steal: 9 % | 2 | 3 | 0.6 |"));
}

TEST(AnswerSection, NamesAMetricThatNoTrialHas) {
  StudyResult result = SmallResult();
  result.missing_metrics = {{.metric = "ratte", .wanted_by = "figure F", .nearest = "rate"}};
  EXPECT_THAT(TextOf(AnswerSection(result)),
              HasSubstr("The figure F wants the metric \"ratte\", which no trial has; rate is near it. The "
                        "columns of results.csv"));
  result.answers.clear();
  result.no_answer = "no trial has the metric that decides, rate";
  const std::string text = TextOf(AnswerSection(result));
  EXPECT_THAT(text, HasSubstr("No answer: no trial has the metric that decides, rate."));
  EXPECT_THAT(text, HasSubstr("rate is near it"));
}

TEST(ConfigurationsSection, HasALineForEach) {
  const StudyResult result = SmallResult();
  const Section section = ConfigurationsSection(result);
  const Table& table = First<Table>(section);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[0], ElementsAre("batch 1 (reference)", "infer", "2", "100.1 (98.7 to 101.5)", "1.5",
                                         "0.5", "0.5 %", "100.1", "-", "-", "-"));
  EXPECT_EQ(table.rows[1][2], "2 (1 SUSPECT)");
  EXPECT_EQ(table.rows[1][8], "1.104 (1.098 to 1.11)");
  EXPECT_EQ(table.rows[1][10], "0.76 %");
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  EXPECT_EQ(table.caption, "throughput (images/s)");
  EXPECT_THAT(table.notes.back(), HasSubstr("infer: the engine; decode: reading and preparing"));
}

TEST(ConfigurationsSection, HasMemoryInMegabytes) {
  StudyResult result = SmallResult();
  result.study.metric = "resources.host_memory_bytes.mean";
  result.study.higher_is_better = false;
  const Section section = ConfigurationsSection(result);
  const Table& table = First<Table>(section);
  EXPECT_EQ(table.caption, "memory of the host, mean (MB)");
  EXPECT_EQ(table.rows[0][3], "250");
  EXPECT_EQ(table.rows[0][7], "250");
}

TEST(ComparedSection, StandsBehindTheAnswerWhereThereIsAnotherStudy) {
  StudyResult result = SmallResult();
  result.compared = {
      .metric = "throughput_images_per_s",
      .differences = {"host: box before, tower now"},
      .configurations = {{.label = "batch 1",
                          .before = results::Figures{.n = 2, .mean = 100, .low = 99, .high = 101, .min = 99},
                          .now = results::Figures{.n = 1, .mean = 50},
                          .tested =
                              results::TestedRatio{.ratio = {.n = 1, .ratio = 0.5, .low = 0.4, .high = 0.6},
                                                   .told = results::TestedRatio::kLower}},
                         {.label = "batch 8"}},
      .only_before = {"batch 2"}};
  const Document document = StudyDocument(result);
  EXPECT_EQ(document.sections[1].title, "Beside the other study");
  const std::string text = TextOf(document.sections[1]);
  EXPECT_THAT(text, HasSubstr("| batch 1 | lower | 100 (99 to 101) | 50 | 0.5 (0.4 to 0.6) |"));
  EXPECT_THAT(text, HasSubstr("| batch 8 | - | - | - | - |"));
  EXPECT_THAT(text, HasSubstr("- host: box before, tower now\n- only before: batch 2"));
}

TEST(Table2Rows, AreTheTwentySevenOfThePaperAndTheWait) {
  EXPECT_EQ(Table2Rows().size(), 28u);
  EXPECT_EQ(Table2Rows()[7].paper, "CPU, whole server, average");
  EXPECT_EQ(Table2Rows()[7].metric, "resources.server_cpu.mean");
  EXPECT_EQ(Table2Rows()[27].metric, "resources.container_memory_bytes.min");
}

TEST(Table2Section, FillsEveryCellOrSaysWhyNot) {
  const StudyResult result = SmallResult();
  const Section section = Table2Section(result);
  const Table& table = First<Table>(section);
  EXPECT_THAT(table.columns, ElementsAre("parameter", "ours", "unit", "batch 1", "batch 8 *"));
  ASSERT_EQ(table.rows.size(), 28u);
  for (const auto& row : table.rows) EXPECT_THAT(row, Each(Not("")));
  EXPECT_EQ(table.rows[4][3], "12.5 ± 0.25");
  const auto memory = std::ranges::find_if(
      table.rows, [](const auto& row) { return row[1] == "resources.host_memory_bytes.mean"; });
  EXPECT_EQ((*memory)[3], "250");
  EXPECT_EQ(table.rows[7][3], "- (2)");  // by the trial's own words
  EXPECT_EQ(table.notes[1], "(2) the counters of the far host cannot be read");
  EXPECT_THAT(table.notes, testing::Contains(HasSubstr("in one process there is no container")));
}

TEST(Table2Section, ComparesThePreparationOfTheModelWithTheStartOfTheServer) {
  StudyResult result = SmallResult();
  auto& metrics = result.configurations[1].metrics.all;
  metrics.push_back({"server_start_s", {.n = 2, .mean = 0.5, .standard_error = 0.1}});
  metrics.push_back({"resources.container_memory_bytes.mean", {.n = 2, .mean = 5e7}});
  result.configurations[1].words["container_memory_is"] = {{"resident in its processes", 2}};
  const Section section = Table2Section(result);
  const Table& table = First<Table>(section);
  EXPECT_THAT(table.rows[0][4], testing::StartsWith("500 ± 100 ("));
  EXPECT_THAT(table.notes, testing::Contains(HasSubstr("from the server's launch until it is ready")));
  EXPECT_THAT(table.rows[25][4], testing::StartsWith("50 ("));
  EXPECT_THAT(table.notes, testing::Contains(HasSubstr("resident in its processes")));
}

TEST(PhasesSection, RecommendsLimitsAndShowsThePhasesBesideEachOther) {
  StudyResult result = SmallResult();
  result.phases = StudyResult::Phases{
      .kept = {{.phase = "feed",
                .metric = "beside.feed.per_s",
                .limits = "serve 1.0",
                .configuration = 1,
                .alone = 100,
                .together = 50,
                .tested = {.ratio = {.n = 5, .ratio = 0.5, .low = 0.4, .high = 0.6}, .told = "lower"}}},
      .recommended = "serve 1.0",
      .least_kept = 0.5,
      .why_not = {}};
  const std::string text = TextOf(PhasesSection(result));
  EXPECT_THAT(text, HasSubstr("Set the limits serve 1.0: with them the phase that loses most keeps 50 %"));
  EXPECT_THAT(text, HasSubstr("| feed | serve 1.0 | samples/s | lower | 100 | 50 | 0.5 (0.4 to 0.6) |"));
}

TEST(TimeSection, ShowsTheStepsAndTheNextBottleneck) {
  StudyResult result = SmallResult();
  EXPECT_THAT(TextOf(TimeSection(result)), HasSubstr("weir study --waterfall"));
  result.waterfall = StudyResult::Waterfall{
      .steps = {{{.name = "the model", .blocks = 5, .total_ms = 1, .step = {.mean_ms = 1}},
                 {.name = "decode",
                  .change = "data path memory to files",
                  .configuration = 1,
                  .blocks = 5,
                  .total_ms = 1.5,
                  .p = 0.001,
                  .adjusted_p = 0.002,
                  .step = {.mean_ms = 0.5, .low_ms = 0.4, .high_ms = 0.6}},
                 {.name = "batching",
                  .change = "batch 1 to 8",
                  .configuration = 1,
                  .blocks = 5,
                  .total_ms = 1.2,
                  .p = 0.2,
                  .adjusted_p = 0.2,
                  .step = {.mean_ms = -0.3, .low_ms = -0.7, .high_ms = 0.1}}}},
      .added = StudyResult::Milliseconds{.mean_ms = 0.2, .low_ms = 0.1, .high_ms = 0.3}};
  const Section section = TimeSection(result);
  const std::string text = TextOf(section);
  EXPECT_THAT(
      text, HasSubstr("| decode | data path memory to files | adds time | 0.5 (0.4 to 0.6) | 1.5 | 0.002 |"));
  EXPECT_THAT(
      text, HasSubstr("| batching | batch 1 to 8 | no difference shown | -0.3 (-0.7 to 0.1) | 1.2 | 0.2 |"));
  EXPECT_THAT(text, HasSubstr("| the whole, without the first | - | - | 0.2 (0.1 to 0.3) |"));
  EXPECT_THAT(text, HasSubstr("| batch 8 | decode | infer | 1 of 2 | - |"));
  const Chart& chart = First<Chart>(section);
  EXPECT_EQ(chart.series[0].points[2].from, 1.5);  // it goes back from there
  EXPECT_EQ(chart.series[0].points[2].value, 1.2);
}

TEST(TimeSection, ShowsThePartsByADevicesEventsWithoutAFinding) {
  StudyResult result = SmallResult();
  result.waterfall = StudyResult::Waterfall{
      .steps = {{{.name = "computation on the device",
                  .total_ms = 0.7,
                  .step = {.mean_ms = 0.7},
                  .by_events = true},
                 {.name = "the model: the host's side", .total_ms = 1, .step = {.mean_ms = 0.3}},
                 {.name = "decode", .change = "x", .total_ms = 1.5, .step = {.mean_ms = 0.5}}}},
      .added = StudyResult::Milliseconds{.mean_ms = 0.5}};
  const std::string text = TextOf(TimeSection(result));
  EXPECT_THAT(text, HasSubstr("| computation on the device | - | - | 0.7 | 0.7 | - |"));
  EXPECT_THAT(text, HasSubstr("| the model: the host's side | - | - | 0.3 | 1 | - |"));
  EXPECT_THAT(text, HasSubstr("| decode | x | too few | 0.5 | 1.5 | 1 |"));
  EXPECT_THAT(text, HasSubstr("| the whole, without the model |"));
}

TEST(Table2Section, HasTheEventsOfADeviceWhereOneTold) {
  StudyResult result = SmallResult();
  EXPECT_THAT(TextOf(Table2Section(result)), testing::Not(HasSubstr("on the device")));
  result.configurations[1].metrics.all.push_back({"stages_ms.device.computation", {.n = 2, .mean = 7}});
  EXPECT_THAT(TextOf(Table2Section(result)), HasSubstr("| recogniser's work: on the device |"));
}

TEST(DoubtfulSection, ListsEveryTryThatIsNotValid) {
  const StudyResult result = SmallResult();
  const Section section = DoubtfulSection(result);
  const Table& table = First<Table>(section);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(table.rows[0],
              ElementsAre("batch 8", "trial", "failed", "the \"server\" fell, <b>hard</b>", "1", "3", "1"));
  EXPECT_EQ(table.rows[1][3], "steal: steal 3.1 %");
  EXPECT_EQ(First<Paragraph>(section).text, "SUSPECT for steal: 1; failed: 1.");
}

TEST(CombinationsSection, ListsWhatWasDroppedAndMerged) {
  const StudyResult result = SmallResult();
  const std::string text = TextOf(CombinationsSection(result));
  EXPECT_THAT(text, HasSubstr("batch: 8, payload: shared-memory: two nodes share no memory"));
  EXPECT_THAT(text, HasSubstr("the same as batch 1 (protocol is not applicable)"));
}

TEST(ConditionsSection, SaysWhereADistributedServerRan) {
  StudyResult result = SmallResult();
  EXPECT_THAT(TextOf(ConditionsSection(result)), Not(HasSubstr("Distributed:")));
  result.configurations[0].design.factors["architecture"] = "distributed";
  EXPECT_THAT(TextOf(ConditionsSection(result)), HasSubstr("Client and server share its CPU"));
  result.study.server_host = "user@far";
  EXPECT_THAT(TextOf(ConditionsSection(result)), HasSubstr("Distributed: the server on user@far."));
}

TEST(RepeatSection, HasTheCommands) {
  StudyResult result = SmallResult();
  EXPECT_THAT(TextOf(RepeatSection(result)), Not(HasSubstr("serve")));
  result.rows[2].server_command = "weir serve --model-repository models";
  const std::string text = TextOf(RepeatSection(result));
  EXPECT_THAT(text, HasSubstr("built from 4f2a"));
  EXPECT_THAT(text, HasSubstr("weir study s.yaml -o s"));
  EXPECT_THAT(text, HasSubstr("weir run m|x d --batch 1"));
  EXPECT_THAT(
      text,
      HasSubstr("```\nweir serve --model-repository models\n```\n\n```\nweir run m|x d --batch 8\n```"));
}

TEST(StudyDocument, IsSafeAsHtmlWhateverItsNames) {
  const StudyResult result = SmallResult();
  const std::string html = ToHtml(StudyDocument(result));
  EXPECT_THAT(html, Not(HasSubstr("<batch>")));
  EXPECT_THAT(html, Not(HasSubstr("<b>hard")));
  EXPECT_THAT(html, HasSubstr("Figure 4 &amp; more"));
}

TEST(ResultsCsv, HasARowForEachTry) {
  EXPECT_EQ(ResultsCsv(SmallResult()),
            "id,attempt,counts,configuration,label,role,block,position,seed,took_s,batch,verdict,reasons,"
            "message,throughput_images_per_s,bottleneck,command,server_command\n"
            "a1,1,true,0,batch 1,trial,0,1,9,1.5,1,VALID,,,100.1,infer,weir run m|x d --batch 1,\n"
            "b1,1,false,1,batch 8,trial,0,2,9,0.5,8,failed,,\"the \"\"server\"\" fell, <b>hard</b>\",,,,\n"
            "b1,2,true,1,batch 8,trial,0,2,9,2.5,8,SUSPECT,steal: steal 3.1 %,,0.1,decode,weir run m|x d "
            "--batch 8,\n");
}

TEST(StudyCsv, AMetricThatIsNamedAsAFactorHasAColumnOfItsOwn) {
  StudyResult result = SmallResult();
  for (StudyResult::Row& row : result.rows) row.levels["images"] = "200";
  for (const char* name : {"images", "seed", "command", "verdict"}) result.rows[0].metrics[name] = 40;
  const auto rows = ParseCsv(ResultsCsv(result));
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  EXPECT_THAT(rows->columns, testing::IsSupersetOf({"images", "measured_images", "measured_seed",
                                                    "measured_command", "measured_verdict", "command"}));
  const auto column = std::ranges::find(rows->columns, "measured_images") - rows->columns.begin();
  EXPECT_EQ(rows->row(0)[static_cast<size_t>(column)], "40");

  for (StudyResult::Configuration& one : result.configurations) one.design.levels["images"] = "200";
  for (const char* name : {"images", "n", "label"})
    result.configurations[0].metrics.all.push_back({name, {.n = 2, .mean = 40}});
  const auto summary = ParseCsv(SummaryCsv(result));
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_THAT(summary->columns, testing::IsSupersetOf({"images", "images:n", "images:mean", "n", "n:n"}));
}

TEST(WriteStudyReport, WritesEveryForm) {
  const std::string folder = testing::TempDir() + "study_report_test." + std::to_string(::getpid());
  ASSERT_TRUE(MakeFolders(folder));
  const StudyResult result = SmallResult();
  ASSERT_TRUE(WriteStudyReport(result, folder));
  EXPECT_EQ(*ParseJson(*ReadTextFile(folder + "/report.json")), result.ToJson());
  EXPECT_EQ(*ReadTextFile(folder + "/results.csv"), ResultsCsv(result));
  EXPECT_EQ(*ReadTextFile(folder + "/summary.csv"), SummaryCsv(result));
  EXPECT_THAT(*ReadTextFile(folder + "/report.html"), testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(*ReadTextFile(folder + "/report.md"), testing::StartsWith("# "));
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(WriteStudyReport(result, folder));
}

TEST(SummaryCsv, HasARowForEachConfiguration) {
  const std::string csv = SummaryCsv(SmallResult());
  EXPECT_THAT(csv, testing::StartsWith("configuration,label,batch,trials_valid,trials_suspect,trials_invalid,"
                                       "trials_failed,trials_skipped,objective,n,mean,"
                                       "standard_error,low,high,standard_deviation,median,"));
  EXPECT_THAT(
      csv,
      HasSubstr("\n0,batch "
                "1,1,2,0,0,0,0,throughput_images_per_s,2,100.1,0.5,98.7,101.5,1.5,100.1,,,99,101,,,,,,"));
  EXPECT_THAT(csv, HasSubstr("\n1,batch "
                             "8,8,1,1,0,0,0,throughput_images_per_s,2,110.5,0.6,108.8,112.2,1.4,110.2,,,109,"
                             "112,1.104,1.0977,1.1101,0.0076,higher,"));
  EXPECT_THAT(csv, HasSubstr("stages_ms.infer:mean"));
}

}  // namespace
}  // namespace weir::report
