#include "serve/statistics.h"

#include <gtest/gtest.h>

#include "serve/metrics.h"

namespace weir::serve {
namespace {

constexpr Instant kStart{1s};

infer::Times TimesAt(Instant queued) {
  return {.queued = queued,
          .taken = queued + 500us,
          .handed = queued + 2500us,
          .started = queued + 3ms,
          .done = queued + 6ms};
}

Statistics::Answered Of(int64_t rows, int64_t batch) {
  return {.received = kStart,
          .answered = kStart + 10ms,
          .times = TimesAt(kStart),
          .rows = rows,
          .executed_batch = batch};
}

TEST(Statistics, CountsABatchOnceHoweverManyRequestsItHad) {
  Statistics statistics;
  EXPECT_EQ(statistics.Succeeded(Of(1, 4)), 0U);
  EXPECT_EQ(statistics.Succeeded(Of(2, 4)), 0U);
  EXPECT_EQ(statistics.Succeeded(Of(1, 4)), 1U);
  EXPECT_EQ(statistics.Succeeded(Of(2, 2)), 1U);
  const oip::ModelStatistics told = statistics.Get(WallTime(kStart));
  EXPECT_EQ(told.inference_count, 6U);
  EXPECT_EQ(told.execution_count, 2U);
  EXPECT_EQ(told.success.count, 4U);
  ASSERT_EQ(told.batches.size(), 2U);
  EXPECT_EQ(told.batches[1].batch_size, 4U);
  EXPECT_EQ(told.batches[1].compute_infer.count, 1U);
  EXPECT_EQ(told.batches[1].compute_infer.total, Duration(3ms));
}

TEST(Statistics, SumsThePhasesOfRequests) {
  Statistics statistics;
  statistics.Succeeded(Of(1, 1));
  statistics.Succeeded(Of(1, 1));
  statistics.Failed(5ms);
  const oip::ModelStatistics told = statistics.Get(WallTime(kStart));
  EXPECT_EQ(told.success.total, Duration(20ms));
  EXPECT_EQ(told.queue.total, Duration(2ms));
  EXPECT_EQ(told.compute_input.total, Duration(4ms));
  EXPECT_EQ(told.compute_infer.total, Duration(6ms));
  EXPECT_EQ(told.compute_output.total, Duration(8ms));
  EXPECT_EQ(told.fail.count, 1U);
  EXPECT_EQ(told.fail.total, Duration(5ms));
}

TEST(Durations, AddUpToTheStayOfTheRequest) {
  const Instant read = kStart + 2ms;
  const infer::Times times = TimesAt(read);
  const infer::ServerDurations told =
      DurationsOf({.first_byte = kStart - 3ms, .received = kStart, .answered = *times.done + 1ms}, times);
  const Phases phases = PhasesOf(times);
  EXPECT_EQ(told.receive, Duration(3ms));
  EXPECT_EQ(told.queue, phases.queue);
  EXPECT_EQ(told.compute_input, phases.compute_input);
  EXPECT_EQ(told.compute_infer, phases.compute_infer);
  EXPECT_EQ(told.compute_output, Duration(1ms));
  EXPECT_EQ(told.whole(), *times.done + 1ms - (kStart - 3ms));
  EXPECT_GE(told.rest, Duration(2ms)) << "reading it, before it was in the queue";
}

TEST(Durations, WhatOverlapsIsTakenFromTheRest) {
  infer::Times times = TimesAt(kStart);
  times.started = *times.queued;  // as an engine may say that computes while the rest of the batch comes
  const infer::ServerDurations told =
      DurationsOf({.first_byte = kStart, .received = kStart, .answered = *times.done}, times);
  EXPECT_LT(told.rest, Duration{});
  EXPECT_EQ(told.whole(), *times.done - kStart);
}

TEST(Statistics, TellsWhenTheLastRequestWas) {
  Statistics statistics;
  const WallTime wall(kStart);
  EXPECT_EQ(statistics.Get(wall).last_inference_ms, 0U);
  statistics.Succeeded(Of(1, 1));
  EXPECT_EQ(statistics.Get(wall).last_inference_ms, wall.MillisecondsAt(kStart) + 10);
  EXPECT_GT(wall.MillisecondsAt(kStart), 1'600'000'000'000U);
}

TEST(Metrics, SpeaksThePrometheusText) {
  Metrics metrics;
  ModelMetrics& model = metrics.OfModel("m", "1");
  model.Succeeded({.rows = 3, .executions = 1, .request = 10us, .queue = 2us});
  model.Failed(ErrorCode::kDeadline);
  model.Refused(Refusal::kQueueFull);
  metrics.Refused(RequestRefusal::kUnknownModel);
  model.SetPending(7);
  metrics.SetProcess(2500ms, 4096);
  model.SetBusy(1s, 2);
  model.SetBusy(1500ms, 2);
  const std::string text = metrics.Text();
  for (const char* line :
       {"nv_inference_count{model=\"m\",version=\"1\"} 3", "weir_requests_refused_total{",
        "nv_inference_request_duration_us{model=\"m\",version=\"1\"} 10",
        "nv_inference_pending_request_count{model=\"m\",version=\"1\"} 7",
        "weir_accelerator_busy_seconds{model=\"m\",version=\"1\"} 1.5", "process_cpu_seconds_total 2.5",
        "process_resident_memory_bytes 4096", "weir_accelerator_streams{model=\"m\",version=\"1\"} 2",
        "weir_requests_refused_total{reason=\"unknown_model\"} 1"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Metrics, SayThatTimesAreOfAnsweredRequests) {
  Metrics metrics;
  metrics.OfModel("m", "1").Succeeded({.rows = 1});
  metrics.OfModel("m", "1").Observe({.first_byte = kStart, .received = kStart, .sent = kStart + 1ms});
  const std::string text = metrics.Text();
  for (const char* name :
       {"nv_inference_request_duration_us", "nv_inference_queue_duration_us", "weir_request_seconds"}) {
    const size_t help = text.find(std::string("# HELP ") + name);
    ASSERT_NE(help, std::string::npos) << name;
    const std::string line = text.substr(help, text.find('\n', help) - help);
    EXPECT_NE(line.find("answered requests"), std::string::npos) << line;
    EXPECT_NE(line.find("refused, timed out"), std::string::npos) << line;
  }
}

TEST(Metrics, CountersOfTheProcessAreCounters) {
  Metrics metrics;
  metrics.SetProcess(2s, 4096);
  metrics.SetProcess(3s, 4096);
  metrics.SetLogDropped(5);
  metrics.SetLogDropped(7);
  metrics.OfModel("m", "1").SetHung(true);
  const std::string text = metrics.Text();
  for (const char* line :
       {"# TYPE process_cpu_seconds_total counter", "\nprocess_cpu_seconds_total 3\n",
        "# TYPE weir_log_lines_dropped_total counter", "\nweir_log_lines_dropped_total 7\n",
        "\nweir_engine_hung{model=\"m\",version=\"1\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Metrics, CountOnAfterAReload) {
  Metrics metrics;
  metrics.OfModel("m", "1").Succeeded({.rows = 3});
  metrics.OfModel("m", "1").Succeeded({.rows = 4});
  EXPECT_NE(metrics.Text().find("nv_inference_count{model=\"m\",version=\"1\"} 7"), std::string::npos);
}

TEST(Metrics, ObservesPhasesByProtocolAndBatch) {
  Metrics metrics;
  oip::RequestTrace exchange{.protocol = oip::Protocol::kGrpc,
                             .first_byte = kStart,
                             .received = kStart + 1ms,
                             .decoded = kStart + 2ms,
                             .encoded = kStart + 8ms,
                             .sent = kStart + 9ms,
                             .times = TimesAt(kStart + 2ms),
                             .executed_batch = 5};
  metrics.OfModel("m", "1").Observe(exchange);
  exchange.times.done = std::nullopt;
  metrics.OfModel("m", "1").Observe(exchange);
  const std::string text = metrics.Text();
  const auto count = [&](const std::string& phase) {
    const std::string key = "weir_phase_seconds_count{batch=\"8\",model=\"m\",phase=\"" + phase +
                            "\",protocol=\"grpc\",version=\"1\"} ";
    const size_t at = text.find(key);
    return at == std::string::npos ? "" : text.substr(at + key.size(), 1);
  };
  EXPECT_EQ(count("receive"), "2") << text;
  EXPECT_EQ(count("infer"), "1");
  EXPECT_EQ(count("output"), "1");
  EXPECT_EQ(count("send"), "2");
}

}  // namespace
}  // namespace weir::serve
