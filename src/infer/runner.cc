#include "infer/runner.h"

#include <fmt/format.h>

#include <utility>

#include "base/thread.h"

namespace weir::infer {

Result<std::unique_ptr<Runner>> Runner::Create(std::shared_ptr<Session> session, const Clock& clock,
                                               Options options) {
  CHECK(session != nullptr);
  if (options.workers < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("runner: workers is {}: give 1 or more, or 0 for as many as keep the engine busy",
                            options.workers));
  }
  if (options.max_queue < 0) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("runner: max_queue is {}: give 0 or more", options.max_queue));
  }
  if (options.workers == 0) options.workers = session->callers();
  return std::unique_ptr<Runner>(new Runner(std::move(session), clock, options));
}

Runner::Runner(std::shared_ptr<Session> session, const Clock& clock, Options options)
    : session_(std::move(session)), clock_(clock), options_(options), idle_(options.workers) {
  for (int i = 0; i < options_.workers; ++i) {
    workers_.push_back(StartThread(fmt::format("engine-{}", i), [this](const std::stop_token&) { Work(); }));
  }
}

Runner::~Runner() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  workers_.clear();
}

void Runner::Submit(Call call) {
  call.times.queued = clock_.Now();
  if (const auto refusal = Enqueue(call)) {
    call.Answer(std::unexpected(*refusal));
  } else {
    changed_.NotifyOne();
  }
}

std::optional<Error> Runner::Enqueue(Call& call) {
  MutexLock lock(mutex_);
  if (stopping_) return Error{ErrorCode::kCancelled, "the runner is stopping"};
  if (std::ssize(queue_) >= options_.max_queue + idle_) {
    return Error{ErrorCode::kOverloaded,
                 fmt::format("{} calls are waiting and the queue takes no more: send slower, or try later",
                             options_.max_queue)};
  }
  queue_.push_back(std::move(call));
  return std::nullopt;
}

std::optional<Call> Runner::Take() {
  MutexLock lock(mutex_);
  while (queue_.empty() && !stopping_) changed_.Wait(mutex_);
  if (queue_.empty()) return std::nullopt;
  Call call = std::move(queue_.front());
  queue_.pop_front();
  --idle_;
  return call;
}

void Runner::Work() {
  while (std::optional<Call> call = Take()) {
    Result<Response> response = Compute(*call);
    {
      MutexLock lock(mutex_);
      ++idle_;  // before the answer, so that who sends the next call on it finds a place
    }
    call->Answer(std::move(response));
  }
}

Result<Response> Runner::Compute(Call& call) {
  Request& request = call.request;
  const Instant taken = clock_.Now();
  if (request.deadline && *request.deadline < taken) {
    return Fail(ErrorCode::kDeadline, fmt::format("the deadline passed {:.3f} ms before the engine was free",
                                                  Milliseconds(taken - *request.deadline)));
  }
  auto result = session_->Run(request.inputs, request.outputs);
  call.times.done = result && result->done ? *result->done : clock_.Now();
  call.times.started = result && result->started ? *result->started : taken;
  if (!result) return std::unexpected(std::move(result).error());
  return Response{.model = std::move(request.model),
                  .version = std::move(request.version),
                  .id = std::move(request.id),
                  .outputs = std::move(result->outputs)};
}

}  // namespace weir::infer
