// The fields that results of runs and of loads share with those of trials. For the .cc files of this module.
#pragma once

#include "results/describe.h"
#include "results/load_result.h"
#include "results/run_result.h"
#include "results/server_shares.h"

namespace weir::results {

template <typename F>
void Describe(F& fields, Described<F, ServerShares::Server>& server) {
  fields("server", server.server);
  fields.FromZero("answered", server.answered);
  fields.FromZero("failed", server.failed);
  fields.FromZero("moved", server.moved);
  fields.FromZero("share", server.share);
}

template <typename F>
void Describe(F& fields, Described<F, ServerShares>& shares) {
  fields("balance", shares.balance);
  fields.FromZero("retried", shares.retried);
  fields.FromZero("imbalance", shares.imbalance);
  fields("each", shares.each);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Times>& times) {
  fields.FromZero("mean", times.mean);
  fields.FromZero("standard_deviation", times.standard_deviation);
  fields.FromZero("min", times.min);
  for (size_t i = 0; i < LoadResult::kPercentileCount; ++i)
    fields.FromZero(LoadResult::kPercentiles[i].first, times.percentiles[i]);
  fields.FromZero("max", times.max);
  fields.FromZero("n", times.n);
  fields.Unless("intervals_95", times.intervals_95);
  fields.Require(times.n == 0 || times.mean, "key \"mean\" is missing, and n is above 0");
  fields.Require(times.n == 0 || times.min, "key \"min\" is missing, and n is above 0");
  fields.Require(times.n == 0 || times.max, "key \"max\" is missing, and n is above 0");
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::ServerRequests>& requests) {
  fields.FromZero("counted", requests.counted);
  fields.FromZero("ours_at_most", requests.ours_at_most);
  fields.FromZero("others_at_least", requests.others_at_least);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Split::Server>& server) {
  fields.FromZero("receive", server.receive);
  fields.FromZero("queue", server.queue);
  fields.FromZero("compute_input", server.compute_input);
  fields.FromZero("compute_infer", server.compute_infer);
  fields.FromZero("compute_output", server.compute_output);
  fields.Finite("server_rest", server.rest);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Split>& split) {
  fields.Finite("slip", split.slip);
  fields.Finite("client_receive", split.client_receive);
  fields.FromZero("client_send", split.client_send);
  fields.Finite("wire_and_wait", split.wire_and_wait);
  fields.Beside("queue", split.server);
}

template <typename F>
void Describe(F& fields, Described<F, LoadResult::Slowest>& slowest) {
  fields.FromZero("above_percentile", slowest.above_percentile);
  fields.FromZero("n", slowest.n);
  fields.FromZero("mean_ms", slowest.mean);
  fields("split_ms", slowest.split);
}

template <typename F>
void Describe(F& fields, Described<F, RunResult::DeviceTimes>& times) {
  fields("host_to_device", times.host_to_device);
  fields("computation", times.compute);
  fields("device_to_host", times.device_to_host);
}

template <typename F>
void Describe(F& fields, Described<F, RunResult::Stages>& stages) {
  fields("model_prepare", stages.model_prepare);
  fields("warm_up", stages.warm_up);
  fields("load_prepare", stages.load_prepare);
  fields("wait", stages.wait);
  fields("send", stages.send);
  fields("infer", stages.infer);
  fields("result_load", stages.result_load);
  fields("print", stages.print);
  fields("total", stages.total);
  fields("device", stages.device);
}

template <typename F>
void Describe(F& fields, Described<F, RunResult::CpuTimes>& times) {
  fields("load_prepare", times.load_prepare);
  fields("other", times.other);
  fields("infer", times.infer);
}

template <typename F>
void Describe(F& fields, Described<F, RunResult::Accuracy>& accuracy) {
  fields("top1", accuracy.top1);
  fields("top5", accuracy.top5);
  fields("labelled", accuracy.labelled);
}

template <typename F>
void Describe(F& fields, Described<F, Bounds>& bounds) {
  fields("read", bounds.read);
  fields("decode", bounds.decode);
  fields("loaders", bounds.loaders);
  fields("infer", bounds.infer);
  fields("in_flight", bounds.in_flight);
  fields("server", bounds.server);
  fields("network", bounds.network);
  fields("print", bounds.print);
  fields("cpu", bounds.cpu);
  fields.Unless("pipeline", bounds.pipeline);
}

}  // namespace weir::results
