#include "run/picture_judge.h"

#include <fmt/format.h>

#include <utility>

#include "dataset/hash.h"
#include "dataset/preparer.h"
#include "oip/client.h"
#include "run/answers.h"
#include "run/backend.h"

namespace weir::run {

Result<std::unique_ptr<PictureJudge>> PictureJudge::Open(const JudgeOptions& options, const Clock& clock) {
  if (oip::IsModelUrl(options.model)) {
    return Fail(ErrorCode::kUnsupported,
                "--recognise: give a model's file or folder; a server's answers could change meanwhile");
  }
  std::unique_ptr<PictureJudge> judge(new PictureJudge(options));
  const model::Model model = TRY(model::OpenModel(options.model, {}));
  if (!model.recipe) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--recognise: model {} does not say how pictures become its input: put {}", model.name,
                    model.folder.empty() ? fmt::format("{}.recipe.yaml beside it", model.name)
                                         : "recipe.yaml into its folder"));
  }
  judge->target_ = TRY(MakeTarget({model.name, model.inputs, model.outputs}, model.recipe, model.labels));
  judge->target_.fixed_batch = model.fixed_batch;
  infer::SessionOptions session = model::SessionDefaults(model);
  session.batch = model.fixed_batch.value_or(1);
  judge->opened_ = TRY(model::OpenSession(model, "", session, clock));
  std::string hash = "no file";
  if (!model.path.empty()) hash = TRY(dataset::HashOfFile(model.path));
  judge->identity_ = fmt::format("{} ({}), score at least {}", model.name, hash, options.min_score);
  return judge;
}

PictureJudge::Judge PictureJudge::MakeJudge() const {
  const auto preparer = std::make_shared<dataset::Preparer>(target_.recipe.geometry, options_.decode);
  return [this, preparer](std::span<const std::byte> encoded) { return Check(*preparer, encoded); };
}

// One picture a batch, so that its score does not depend on other pictures. A model with a fixed, larger
// batch gets zeros for the others.
image::Accepted<void> PictureJudge::Check(dataset::Preparer& preparer,
                                          std::span<const std::byte> encoded) const {
  const image::Pixels* pixels = TRY(preparer.Prepare(encoded));
  const dataset::Recipe& recipe = target_.recipe;
  const dataset::Size size{pixels->width, pixels->height};
  const int64_t items = target_.fixed_batch.value_or(1);
  const auto failed = [](std::string words) {
    return std::unexpected(image::Reject{image::RejectReason::kFailed, std::move(words)});
  };
  infer::Tensor tensor{target_.input.name, target_.input.dtype, {}, {}};
  const int64_t channels = recipe.geometry.channel_count();
  if (recipe.layout == dataset::Layout::kNchw) {
    tensor.shape = {items, channels, size.height, size.width};
  } else {
    tensor.shape = {items, size.height, size.width, channels};
  }
  const size_t item_bytes = dataset::InputBytes(recipe, size);
  tensor.data = Bytes::Allocate(item_bytes * static_cast<size_t>(items));
  dataset::WriteInput(recipe, *pixels, tensor.data.mutable_data());
  const auto result = opened_.session->Run({std::move(tensor)}, {target_.output});
  if (!result) return failed(result.error().message);
  const auto answers = RankAnswers(result->outputs.front(), items, 0, recipe, 1);
  if (!answers) return failed(answers.error().message);
  if (answers->empty()) return failed("the model gives no scores");
  const Answer& best = answers->front();
  if (best.score >= options_.min_score) return {};
  return std::unexpected(image::Reject{
      image::RejectReason::kUnrecognised,
      fmt::format("class {} scores {:.6g}, under {}", best.class_index, best.score, options_.min_score)});
}

}  // namespace weir::run
