#include "probe/model_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/json.h"
#include "infer/engine.h"
#include "model/model.h"

namespace weir::probe {
namespace {

// Returns zeros of the shape that a batch has. An empty text is four zero bytes, so texts are zeros too.
Result<infer::Tensor> Zeros(const infer::TensorInfo& info, int batch) {
  infer::Tensor tensor{.name = info.name, .dtype = info.dtype, .shape = info.shape, .data = {}};
  if (!tensor.shape.empty() && tensor.shape[0] < 0) tensor.shape[0] = batch;
  for (const int64_t size : tensor.shape)
    if (size < 0)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("input {} has the shape {}: only the batch may be free; give --batch and "
                              "--step-ms instead of --profile-from",
                              info.name, infer::ToString(info.shape)));
  const int64_t elements = TRY(infer::ElementCount(tensor.shape));
  const size_t each =
      std::max<size_t>(infer::ByteSize(info.dtype), info.dtype == infer::DType::kBytes ? 4 : 1);
  tensor.data = Bytes::Allocate(static_cast<size_t>(elements) * each);
  return tensor;
}

}  // namespace

Result<ModelStep> MeasureStep(const std::function<Status()>& run, Duration budget, const Clock& clock) {
  constexpr int kWarmUp = 3, kLeast = 5;
  for (int i = 0; i < kWarmUp; ++i) TRY_STATUS(run());
  std::vector<Duration> took;
  const Instant begin = clock.Now();
  while (std::ssize(took) < kLeast || clock.Now() - begin < budget) {
    const Instant before = clock.Now();
    TRY_STATUS(run());
    took.push_back(clock.Now() - before);
  }
  std::ranges::sort(took);
  return ModelStep{.step = took[took.size() / 2],
                   .low = took[took.size() / 4],
                   .high = took[3 * took.size() / 4],
                   .runs = static_cast<int>(took.size()),
                   .engine = {}};
}

std::string ModelStepText(const std::string& model, const ModelStep& step) {
  return fmt::format("{} takes {:.3f} ms for a batch of {} on {} (quartiles {:.3f} and {:.3f} ms, {} runs)",
                     EscapeBytes(model), 1e3 * Seconds(step.step), step.batch, step.engine,
                     1e3 * Seconds(step.low), 1e3 * Seconds(step.high), step.runs);
}

Result<ModelStep> MeasureModelStep(const ModelStepOptions& options, const Clock& clock) {
  const model::Model model = TRY(model::OpenModel(options.path, {}));
  infer::SessionOptions session_options = model::SessionDefaults(model);
  if (options.threads > 0) session_options.threads = options.threads;
  session_options.streams = 1;  // a step is one batch on the whole accelerator
  const model::OpenedSession opened = TRY(model::OpenSession(model, options.engine, session_options, clock));
  const int batch = model.fixed_batch.value_or(options.batch);
  std::vector<infer::Tensor> inputs;
  for (const infer::TensorInfo& info : opened.session->inputs()) {
    if (!info.optional) inputs.push_back(TRY(Zeros(info, batch)));
  }
  ModelStep step = TRY(MeasureStep(
      [&]() -> Status {
        TRY(opened.session->Run(inputs, {}));
        return {};
      },
      options.budget, clock));
  step.batch = batch;
  step.engine = model::EngineOf(model, options.engine);
  return step;
}

}  // namespace weir::probe
