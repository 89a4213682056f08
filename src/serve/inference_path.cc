#include "serve/inference_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>

#include "base/thread.h"
#include "oip/infer_rules.h"
#include "oip/triton_names.h"
#include "serve/check_request.h"
#include "serve/classification.h"

namespace weir::serve {
namespace {

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

constexpr uintptr_t kAlignment = 64;  // of data that engines compute on, as Bytes has it

bool IsFloat(infer::DType dtype) {
  return dtype == infer::DType::kFp32 || dtype == infer::DType::kFp16 || dtype == infer::DType::kBf16 ||
         dtype == infer::DType::kFp64;
}

bool IsTheEngines(ErrorCode code) { return code == ErrorCode::kInternal || code == ErrorCode::kIo; }

Refusal RefusalOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOverloaded:
      return Refusal::kQueueFull;
    case ErrorCode::kDeadline:
      return Refusal::kDeadline;
    case ErrorCode::kCancelled:
      return Refusal::kCancelled;
    default:
      return Refusal::kInvalid;
  }
}

// Scores that a thread of the engine may rank: a fraction of a millisecond.
constexpr int64_t kMostScoresInPlace = 1 << 16;

// The remaining work on a response, done on the pool.
class AnswerWork final : public DecodePool::Work {
 public:
  explicit AnswerWork(std::move_only_function<void()> answer) : answer_(std::move(answer)) {}
  size_t pieces() const override { return 1; }
  void Do(size_t) override {}
  void Finish() override { answer_(); }

 private:
  std::move_only_function<void()> answer_;
};

// A model that lists fewer outputs than its file has answers with those.
bool WantsAll(const ServedModel& served) {
  return served.outputs.size() == served.loaded.session().outputs().size();
}

}  // namespace

// One request on its way.
struct InferencePath::Inference {
  std::shared_ptr<ServedModel> served;
  oip::InferRequest request;
  infer::Completion completion;
  Instant begun;
  int64_t rows = 1;
  bool counted = false;                                  // it came as far as the queue
  std::vector<SharedMemoryRegistry::Acquired> acquired;  // where its inputs lie
  std::stop_token cancelled;                             // where an output is classified
};

InferencePath::InferencePath(Options options, const SharedMemoryRegistry* regions, const Clock& clock,
                             FailureLog& failures)
    : options_(options),
      regions_(regions),
      clock_(clock),
      failures_(failures),
      prepared_(std::make_shared<http::ByteBudget>(options.max_prepared_bytes)),
      preparers_(options.decode),
      pool_(options.decode_threads > 0 ? options.decode_threads : UsableCpus(),
            options.max_pictures_waiting) {}

void InferencePath::Start(std::shared_ptr<ServedModel> served, oip::InferRequest request,
                          infer::Completion completion) {
  const Instant begun = request.received == Instant{} ? clock_.Now() : request.received;
  auto inference = std::make_unique<Inference>(
      Inference{std::move(served), std::move(request), std::move(completion), begun});
  if (const Status admitted = Admit(*inference); !admitted) return Refuse(*inference, admitted.error(), {});
  if (inference->served->takes_pictures) return Prepare(std::move(inference));
  if (inference->served->payload != Payload::kLookup) return Submit(std::move(inference));
  infer::Tensor embeddings = std::move(inference->request.request.inputs.front());
  LookUp(std::move(inference), std::move(embeddings), {});
}

Status InferencePath::Admit(Inference& inference) const {
  oip::InferRequest& request = inference.request;
  const ServedModel& served = *inference.served;
  inference.rows = TRY(CheckRequest(served, request, options_.compat));
  TRY_STATUS(FetchInputs(inference));
  TRY_STATUS(TakeModelShapes(served, request.request.inputs));
  if (served.takes_pictures && request.request.inputs.front().shape.front() < 1)
    return Invalid(served.What() + ": there is no picture in the request");
  if (request.timeout && request.timeout->count() > 0) {
    const Instant expires = inference.begun + *request.timeout;
    request.request.deadline = std::min(request.request.deadline.value_or(expires), expires);
  }
  return {};
}

// Fetches inputs from shared memory: plain numbers are used in place; what is parsed, or may be an
// index, as a copy that the client cannot change behind the check.
Status InferencePath::FetchInputs(Inference& inference) const {
  oip::InferRequest& request = inference.request;
  uint64_t total = 0;
  for (size_t i = 0; i < request.input_regions.size(); ++i) {
    const auto& part = request.input_regions[i];
    if (!part) continue;
    infer::Tensor& input = request.request.inputs[i];
    const std::string what = inference.served->What("input", input.name);
    if (regions_ == nullptr) {
      return Fail(ErrorCode::kUnsupported,
                  what + ": shared memory of clients is off: start the server with --allow-client-shm");
    }
    if (part->byte_size > options_.max_region_bytes - total) {
      return Invalid(fmt::format("{}: more than {} bytes of shared memory in one request", what,
                                 options_.max_region_bytes));
    }
    total += part->byte_size;
    const int64_t elements = TRY_CONTEXT(oip::CountElements(input), what);
    if (const Status size = oip::CheckSize(input.dtype, elements, part->byte_size); !size)
      return Context(what, size.error());
    if (inference.served->payload == Payload::kTensor && IsFloat(input.dtype)) {
      Result<SharedMemoryRegistry::Acquired> acquired = regions_->Acquire(*part);
      if (!acquired) return std::unexpected(RegionFailed(what, part->region, acquired.error()));
      if (reinterpret_cast<uintptr_t>(acquired->data.data()) % kAlignment == 0) {
        input.data = acquired->data;
        inference.acquired.push_back(*std::move(acquired));
        continue;
      }
    }
    Result<Bytes> data_read = regions_->Read(*part);
    if (!data_read) return std::unexpected(RegionFailed(what, part->region, data_read.error()));
    input.data = *std::move(data_read);
    if (const Status data = oip::CheckData(input); !data) return Context(what, data.error());
  }
  return {};
}

void InferencePath::Prepare(InferencePtr inference) {
  const std::shared_ptr<ServedModel> served = inference->served;
  infer::Tensor input = std::move(inference->request.request.inputs.front());
  auto still_wanted = [this, what = served->What(), cancelled = inference->request.request.cancelled,
                       deadline = inference->request.request.deadline]() -> Status {
    if (cancelled.stop_requested()) return Fail(ErrorCode::kCancelled, what + ": the client left");
    if (!deadline || clock_.Now() < *deadline) return {};
    return Fail(ErrorCode::kDeadline, what + ": the time allowed was over before its pictures were prepared");
  };
  // Shared with the work, which may be refused and then leaves it here.
  auto held = std::make_shared<InferencePtr>(std::move(inference));
  auto done = [this, held](Result<infer::Tensor> tensor) {
    InferencePtr mine = std::move(*held);
    if (!tensor) return Refuse(*mine, tensor.error(), {});
    mine->request.request.inputs.front() = *std::move(tensor);
    Submit(std::move(mine));
  };
  const auto work = std::make_shared<PictureWork>(served, std::move(input), preparers_, *prepared_,
                                                  std::move(still_wanted), std::move(done));
  if (pool_.Offer(work)) return;
  Refuse(**held,
         {ErrorCode::kOverloaded,
          fmt::format("{}: {} requests wait for the decoders, which take no more: send slower, or try later",
                      served->What(), options_.max_pictures_waiting)},
         {});
}

void InferencePath::Submit(InferencePtr inference) {
  // The answer may come, and let the model go, before the runner has returned from taking the call.
  const std::shared_ptr<ServedModel> held = inference->served;
  ServedModel& served = *held;
  LoadedModel& loaded = served.loaded;
  infer::Call call;
  call.request = std::move(inference->request.request);
  inference->request.request.id = call.request.id;
  inference->request.request.durations = call.request.durations;
  call.request.outputs.clear();
  const auto& wishes = inference->request.outputs;
  for (const oip::RequestedOutput& wish : wishes) {
    call.request.outputs.push_back(wish.name);
    if (wish.classification > 0) inference->cancelled = call.request.cancelled;
  }
  if (served.payload == Payload::kIdentify) {
    call.request.outputs = {loaded.identities().output()};
  } else if (wishes.empty() && !WantsAll(served)) {
    for (const infer::TensorInfo& output : served.outputs) call.request.outputs.push_back(output.name);
  }
  inference->counted = true;
  if (loaded.NoteCall()) {
    served.metrics.SetBatchingIdle(true);
    failures_.log()(
        LogLevel::kWarning,
        fmt::format("{} version {}: dynamic batching cannot help: the first calls all came one at "
                    "a time; callers that keep several in flight would fill batches",
                    served.What(), served.version));
  }
  infer::Runner& runner = loaded.runner();
  call.completion = infer::Completion([this, inference = std::move(inference)](
                                          Result<infer::Response> result, const infer::Times& times) mutable {
    Finish(std::move(inference), std::move(result), times);
  });
  runner.Submit(std::move(call));
}

void InferencePath::Finish(InferencePtr inference, Result<infer::Response> result,
                           const infer::Times& times) {
  const ServedModel& served = *inference->served;
  served.loaded.NoteAnswer();
  if (!result) {
    const Error& error = result.error();
    if (IsTheEngines(error.code)) served.loaded.NoteEngine(false);
    return Refuse(*inference, RunFailed(*inference, error), times);
  }
  served.loaded.NoteEngine(true);
  if (served.payload == Payload::kIdentify) {
    if (result->outputs.size() != 1)
      return Refuse(*inference, {ErrorCode::kInternal, "the engine gave no embedding"}, times);
    return LookUp(std::move(inference), std::move(result->outputs.front()), times);
  }
  if (!IsLongToShape(*inference, *result)) return Answer(*inference, *std::move(result), times);
  // Shared with the work, which may be refused and then leaves it here.
  auto held = std::make_shared<InferencePtr>(std::move(inference));
  const auto work =
      std::make_shared<AnswerWork>([this, held, response = *std::move(result), times]() mutable {
        const InferencePtr mine = std::move(*held);
        Answer(*mine, std::move(response), times);
      });
  if (pool_.Offer(work)) return;
  Refuse(**held,
         {ErrorCode::kOverloaded,
          fmt::format("{}: {} requests wait for the threads that rank classes: send slower, or try later",
                      (*held)->served->What(), options_.max_pictures_waiting)},
         times);
}

// Finds the names of embeddings on the pool: a look-up takes milliseconds.
void InferencePath::LookUp(InferencePtr inference, infer::Tensor embeddings, const infer::Times& times) {
  // Shared with the work, which may be refused and then leaves it here.
  auto held = std::make_shared<InferencePtr>(std::move(inference));
  const auto work = std::make_shared<AnswerWork>([this, held, embeddings = std::move(embeddings),
                                                  stamps = times]() mutable {
    const InferencePtr mine = std::move(*held);
    const ServedModel& served = *mine->served;
    const Instant begun = clock_.Now();
    auto outputs = served.loaded.identities().LookUp(embeddings);
    if (!outputs) return Refuse(*mine, Context(served.What(), outputs.error()).error(), stamps);
    if (served.payload == Payload::kLookup) {
      stamps.queued = mine->begun;
      stamps.taken = stamps.handed = stamps.started = begun;
      stamps.done = clock_.Now();
    }
    infer::Response response;
    for (infer::Tensor& output : *outputs) {
      const auto& wishes = mine->request.outputs;
      const bool wanted = wishes.empty() ||
                          std::ranges::find(wishes, output.name, &oip::RequestedOutput::name) != wishes.end();
      if (wanted) response.outputs.push_back(std::move(output));
    }
    Answer(*mine, std::move(response), stamps);
  });
  if (pool_.Offer(work)) return;
  Refuse(
      **held,
      {ErrorCode::kOverloaded,
       fmt::format("{}: {} requests wait for the threads that look identities up: send slower, or try later",
                   (*held)->served->What(), options_.max_pictures_waiting)},
      times);
}

bool InferencePath::IsLongToShape(const Inference& inference, const infer::Response& response) {
  return std::ranges::any_of(inference.request.outputs, [&](const oip::RequestedOutput& wish) {
    if (wish.classification <= 0) return false;
    const auto output = std::ranges::find(response.outputs, wish.name, &infer::Tensor::name);
    return output != response.outputs.end() &&
           infer::ElementCount(output->shape).value_or(0) > kMostScoresInPlace;
  });
}

void InferencePath::Answer(Inference& inference, infer::Response response, const infer::Times& times) const {
  auto shaped = ShapeAnswer(inference, std::move(response));
  if (!shaped) return Refuse(inference, shaped.error(), times);
  const Instant now = clock_.Now();
  Count(inference, *shaped, times, now);
  if (inference.request.request.durations) {
    const Instant first_byte = inference.request.first_byte;
    shaped->durations = DurationsOf({.first_byte = first_byte == Instant{} ? inference.begun : first_byte,
                                     .received = inference.begun,
                                     .answered = now},
                                    times);
  }
  inference.completion.Answer(std::move(shaped), times);
}

Result<infer::Response> InferencePath::ShapeAnswer(const Inference& inference,
                                                   infer::Response response) const {
  const ServedModel& served = *inference.served;
  response.model = served.name;
  response.version = served.version;
  response.id = inference.request.request.id;
  const auto& wishes = inference.request.outputs;
  for (infer::Tensor& output : response.outputs) {
    const auto wish = std::ranges::find(wishes, output.name, &oip::RequestedOutput::name);
    const std::string name = output.name;
    output = TRY_CONTEXT(ShapeOutput(inference, wish == wishes.end() ? nullptr : &*wish, std::move(output)),
                         served.What("output", name));
    // An engine may give an input back, and who sends it reads it later than the check.
    const bool is_sent = wish == wishes.end() || !wish->region;
    if (is_sent && IsInSharedMemory(inference, output.data)) output.data = Bytes::Copy(output.data.span());
  }
  for (const SharedMemoryRegistry::Acquired& input : inference.acquired) TRY_STATUS(input.Check());
  return response;
}

bool InferencePath::IsInSharedMemory(const Inference& inference, const Bytes& data) {
  return std::ranges::any_of(inference.acquired, [&](const SharedMemoryRegistry::Acquired& input) {
    return data.data() >= input.data.data() && data.data() < input.data.data() + input.data.size();
  });
}

Result<infer::Tensor> InferencePath::ShapeOutput(const Inference& inference, const oip::RequestedOutput* wish,
                                                 infer::Tensor output) const {
  const LoadedModel& loaded = inference.served->loaded;
  const model::Model& model = loaded.model();
  const bool is_the_models =
      inference.served->payload != Payload::kIdentify && inference.served->payload != Payload::kLookup;
  if (is_the_models && model.client_outputs != model.outputs) {
    const auto own = std::ranges::find(model.outputs, output.name, &infer::TensorInfo::name);
    const auto seen = std::ranges::find(model.client_outputs, output.name, &infer::TensorInfo::name);
    const bool is_there = own != model.outputs.end() && seen != model.client_outputs.end();
    if (is_there && own->shape != seen->shape) {
      auto shape = Reshape(output.shape, own->shape, seen->shape);
      if (!shape) return Fail(ErrorCode::kInternal, "the model's answer: " + shape.error().message);
      output.shape = *std::move(shape);
    }
  }
  if (wish == nullptr) return output;
  if (wish->classification > 0) {
    const auto labels = model.output_labels.find(output.name);
    output = TRY(Classify(output, {.batched = loaded.max_batch() > 0,
                                   .count = wish->classification,
                                   .labels = labels == model.output_labels.end() ? nullptr : &labels->second,
                                   .cancelled = inference.cancelled}));
  }
  if (!wish->region) return output;
  if (regions_ == nullptr) {
    return Fail(ErrorCode::kUnsupported,
                "shared memory of clients is off: start the server with --allow-client-shm");
  }
  if (output.data.size() > wish->region->byte_size) {
    return Invalid(fmt::format("{} bytes do not fit into the {} of region \"{}\"", output.data.size(),
                               wish->region->byte_size, wish->region->region));
  }
  if (const Status written = regions_->Write(*wish->region, output.data); !written)
    return std::unexpected(RegionFailed("", wish->region->region, written.error()));
  return output;
}

// The error of a region that cannot be used. `what` names the tensor.
Error InferencePath::RegionFailed(std::string_view what, const std::string& region, Error error) const {
  if (options_.compat == oip::Compat::kTriton && error.code == ErrorCode::kNotFound)
    return oip::triton::UnknownRegion(region);
  return what.empty() ? error : Context(what, std::move(error)).error();
}

// The error of a request that came as far as the queue.
Error InferencePath::RunFailed(const Inference& inference, Error error) const {
  const std::string& id = inference.request.request.id;
  if (options_.compat == oip::Compat::kTriton && error.code == ErrorCode::kOverloaded)
    return oip::triton::QueueIsFull(id, error.message);
  if (options_.compat == oip::Compat::kTriton && error.code == ErrorCode::kDeadline)
    return oip::triton::TimedOut(id, error.message);
  return Context(inference.served->What(), std::move(error)).error();
}

void InferencePath::Count(Inference& inference, const infer::Response& response, const infer::Times& times,
                          Instant now) const {
  ServedModel& served = *inference.served;
  const int64_t rows = inference.rows;
  const uint64_t executions =
      served.statistics.Succeeded({.received = inference.begun,
                                   .answered = now,
                                   .times = times,
                                   .rows = rows,
                                   .executed_batch = std::max<int64_t>(response.executed_batch, rows)});
  const Phases phases = PhasesOf(times);
  served.metrics.Succeeded({.rows = rows,
                            .executions = executions,
                            .request = now - inference.begun,
                            .queue = phases.queue,
                            .compute_input = phases.compute_input,
                            .compute_infer = phases.compute_infer,
                            .compute_output = phases.done ? now - *phases.done : Duration{}});
}

void InferencePath::Refuse(Inference& inference, const Error& error, const infer::Times& times) const {
  ServedModel& served = *inference.served;
  const Refusal refusal = RefusalOf(error.code);
  // A request that makes no sense says nothing of the model.
  if (inference.counted || refusal != Refusal::kInvalid) {
    served.statistics.Failed(clock_.Now() - inference.begun);
    served.metrics.Failed(error.code);
  }
  if (!IsTheEngines(error.code)) served.metrics.Refused(refusal);
  failures_.Tell(error, inference.request.request.id);
  inference.completion.Answer(std::unexpected(error), times);
}

}  // namespace weir::serve
