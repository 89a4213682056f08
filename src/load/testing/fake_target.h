// A target whose service answers every request before Submit returns.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "load/session/target.h"

namespace weir::load {

class InlineService final : public infer::Service {
 public:
  void Submit(infer::Call call) override {
    ++submitted;
    call.Answer(answer);
  }
  std::atomic<int64_t> submitted = 0;
  Result<infer::Response> answer = infer::Response{};
};

// For one thread. What a test sets beforehand must not change while it is played.
class FakeTarget final : public Target {
 public:
  infer::Service& service() override { return inner; }
  const infer::ModelInfo& info() const override { return model; }
  std::string version() const override { return "1"; }
  std::string Title() const override { return "fake"; }
  std::string protocol() const override { return reached_by; }
  void GiveUp() override {}
  // Counts what was submitted, and `others` more at each look after the first.
  std::optional<infer::PhaseTotals> Statistics() override {
    if (!counts) return std::nullopt;
    infer::PhaseTotals totals;
    totals.success.count = static_cast<uint64_t>(inner.submitted + looks++ * others);
    totals.success.total = static_cast<int64_t>(totals.success.count) * Duration(1us);
    return totals;
  }
  Status Prepare(Requests&) override {
    ++prepared;
    return prepare;
  }

  InlineService inner;
  infer::ModelInfo model{.name = "m"};
  std::string reached_by = "http";
  bool counts = false;  // it has statistics
  int64_t others = 0;   // requests of other clients between two looks
  Status prepare;
  int prepared = 0;
  int64_t looks = 0;
};

}  // namespace weir::load
