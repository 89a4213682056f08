#include "synth/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <thread>

#include "base/thread.h"
#include "dataset/preparer.h"
#include "synth/pictures.h"

namespace weir::synth {
namespace {

constexpr int64_t kBatch = 24;  // pictures; more is no faster here, and at 224 pixels this is 14 MB

// Draws picture `index` and writes it to `out` as one item of the input.
Result<int> DrawInput(const FeatureSpec& spec, int64_t index, dataset::Preparer& preparer, std::byte* out) {
  const MadePicture picture = TRY(DrawPicture(spec.seed, index));
  const auto pixels = preparer.Prepare(std::as_bytes(std::span(picture.jpeg)));
  if (!pixels) {
    return Fail(ErrorCode::kInternal,
                fmt::format("made picture {} is rejected: {}", index, pixels.error().detail));
  }
  dataset::WriteInput(spec.recipe, **pixels, out);
  return picture.label;
}

// Pictures [first, first + labels.size()) to items of `batch`. Worker w of n takes every n-th.
Status DrawBatch(const FeatureSpec& spec, int64_t first, std::span<std::byte> batch, std::span<int> labels) {
  const size_t item_bytes = batch.size() / labels.size();
  const size_t workers = std::min<size_t>(UsableCpus(), labels.size());
  std::vector<Status> statuses(workers);
  std::vector<std::jthread> threads;
  for (size_t worker = 0; worker < workers; ++worker) {
    threads.push_back(StartThread("make", [&, worker](const std::stop_token&) {
      dataset::Preparer preparer(spec.recipe.geometry, {});
      for (size_t i = worker; i < labels.size(); i += workers) {
        const Result<int> label =
            DrawInput(spec, first + static_cast<int64_t>(i), preparer, batch.data() + i * item_bytes);
        if (!label) {
          statuses[worker] = std::unexpected(label.error());
          return;
        }
        labels[i] = *label;
      }
    }));
  }
  threads.clear();  // joins
  for (const Status& status : statuses) TRY_STATUS(status);
  return {};
}

}  // namespace

Result<LabelledFeatures> ComputeFeatures(infer::Session& session, const FeatureSpec& spec) {
  CHECK(session.inputs().size() == 1 && session.outputs().size() == 1);
  const dataset::Size size = *spec.recipe.geometry.OutputSize();
  const size_t item_bytes = dataset::InputBytes(spec.recipe, size);
  const int64_t columns = session.outputs()[0].shape.back();
  LabelledFeatures result{.features = stats::Matrix::Zero(spec.pictures, columns),
                          .labels = std::vector<int>(spec.pictures)};
  for (int64_t first = 0; first < spec.pictures; first += kBatch) {
    if (spec.stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    const int64_t count = std::min(kBatch, spec.pictures - first);
    infer::Tensor input{.name = session.inputs()[0].name,
                        .dtype = infer::DType::kFp32,
                        .shape = {count, 3, size.height, size.width},
                        .data = Bytes::AllocateUninitialized(count * item_bytes)};
    TRY_STATUS(
        DrawBatch(spec, first, input.data.mutable_span(), std::span(result.labels).subspan(first, count)));
    const infer::RunResult answer = TRY(session.Run({input}, {}));
    const Bytes& data = answer.outputs[0].data;
    CHECK(data.size() == static_cast<size_t>(count * columns) * sizeof(float));
    const std::span values(reinterpret_cast<const float*>(data.data()), data.size() / sizeof(float));
    std::ranges::copy(values, result.features.values.begin() + first * columns);
    if (spec.progress) spec.progress(first + count, spec.pictures);
  }
  return result;
}

}  // namespace weir::synth
