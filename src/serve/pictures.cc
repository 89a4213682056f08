#include "serve/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.h"

namespace weir::serve {
namespace {

constexpr size_t kMostIdle = 64;  // decoders kept
constexpr size_t kPixelsPerPiece =
    1 << 20;  // bytes: to normalise them takes about as long as to decode a picture

// The elements of a BYTES tensor that has been checked.
std::vector<std::span<const std::byte>> Elements(const infer::Tensor& tensor) {
  std::vector<std::span<const std::byte>> elements;
  auto rest = tensor.data.span();
  while (rest.size() >= sizeof(uint32_t)) {
    uint32_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    CHECK(length <= rest.size() - sizeof length);
    elements.push_back(rest.subspan(sizeof length, length));
    rest = rest.subspan(sizeof length + length);
  }
  return elements;
}

std::vector<std::span<const std::byte>> Rows(const infer::Tensor& tensor, size_t rows) {
  std::vector<std::span<const std::byte>> parts;
  const size_t size = tensor.data.size() / rows;
  for (size_t i = 0; i < rows; ++i) parts.push_back(tensor.data.span().subspan(i * size, size));
  return parts;
}

dataset::Size SizeOf(const ServedModel& served) {
  return served.loaded.model().recipe->geometry.OutputSize().value();
}

// The part that is left to the CPU: pixels stay as they are where the engine normalises them.
dataset::Recipe RecipeOf(const ServedModel& served) {
  dataset::Recipe recipe = *served.loaded.model().recipe;
  if (served.loaded.session().pixels()) {
    recipe.layout = dataset::Layout::kNhwc;
    recipe.datatype = dataset::ElementType::kUint8;
  }
  return recipe;
}

}  // namespace

image::Accepted<void> Preparers::Prepare(const dataset::Recipe& recipe, std::span<const std::byte> encoded,
                                         std::byte* out) {
  dataset::Preparer preparer = Take(recipe.geometry);
  const auto pixels = preparer.Prepare(encoded);
  if (pixels) dataset::WriteInput(recipe, **pixels, out);
  Keep({recipe.geometry, std::move(preparer)});
  if (pixels) return {};
  return std::unexpected(pixels.error());
}

dataset::Preparer Preparers::Take(const dataset::Geometry& geometry) {
  MutexLock lock(mutex_);
  const auto found =
      std::find_if(idle_.rbegin(), idle_.rend(), [&](const Idle& idle) { return idle.geometry == geometry; });
  if (found == idle_.rend()) return dataset::Preparer(geometry, options_);
  dataset::Preparer preparer = std::move(found->preparer);
  idle_.erase(std::next(found).base());
  return preparer;
}

void Preparers::Keep(Idle idle) {
  std::vector<Idle> surplus;  // destroyed outside of the lock
  MutexLock lock(mutex_);
  idle_.push_back(std::move(idle));
  if (idle_.size() <= kMostIdle) return;
  surplus.push_back(std::move(idle_.front()));
  idle_.erase(idle_.begin());
}

PictureWork::PictureWork(std::shared_ptr<ServedModel> served, infer::Tensor input, Preparers& preparers,
                         http::ByteBudget& budget, std::move_only_function<Status() const> still_wanted,
                         Done done)
    : served_(std::move(served)),
      input_(std::move(input)),
      recipe_(RecipeOf(*served_)),
      item_bytes_(dataset::InputBytes(recipe_, SizeOf(*served_))),
      preparers_(preparers),
      budget_(budget),
      still_wanted_(std::move(still_wanted)),
      done_(std::move(done)) {
  const int64_t pictures = input_.shape.front();
  CHECK(pictures > 0);
  if (served_->payload != Payload::kPixels) {
    pictures_ = Elements(input_);
    per_piece_ = 1;
  } else {
    pictures_ = Rows(input_, static_cast<size_t>(pictures));
    per_piece_ = std::max<size_t>(1, kPixelsPerPiece / std::max<size_t>(1, pictures_.front().size()));
  }
  CHECK(std::ssize(pictures_) == pictures);
  pieces_ = (pictures_.size() + per_piece_ - 1) / per_piece_;
  failed_at_ = pictures;
}

std::byte* PictureWork::Open() {
  MutexLock lock(mutex_);
  if (std::exchange(opened_, true)) return output_.mutable_data();
  const Status wanted = still_wanted_();
  auto memory = wanted ? budget_.Allocate(item_bytes_ * pictures_.size(), 0) : std::nullopt;
  if (memory) {
    output_ = *std::move(memory);
  } else {
    error_ = wanted ? Error{ErrorCode::kOverloaded, served_->What() +
                                                        ": the memory for prepared pictures is used up: "
                                                        "try later"}
                    : wanted.error();
  }
  return output_.mutable_data();
}

void PictureWork::Do(size_t piece) {
  std::byte* const memory = Open();
  if (memory == nullptr) return;
  const size_t end = std::min(pictures_.size(), (piece + 1) * per_piece_);
  for (size_t picture = piece * per_piece_; picture < end; ++picture) {
    if (std::cmp_greater(picture, failed_at_.load(std::memory_order_relaxed))) return;
    if (const Status made = Make(picture, memory + picture * item_bytes_); !made)
      return Broken(static_cast<int64_t>(picture), made.error());
  }
}

Status PictureWork::Make(size_t picture, std::byte* out) {
  const dataset::Recipe& recipe = recipe_;
  const auto bytes = pictures_[picture];
  if (served_->payload == Payload::kPixels) {
    const dataset::Size size = SizeOf(*served_);
    const auto* pixels = reinterpret_cast<const uint8_t*>(bytes.data());
    dataset::WriteInput(recipe, {pixels, size.width, size.height, recipe.geometry.channel_count()}, out);
    return {};
  }
  const auto prepared = preparers_.Prepare(recipe, bytes, out);
  if (prepared) return {};
  const image::Reject& reject = prepared.error();
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: picture {} is rejected: {}{}{}", served_->What(), picture, ToString(reject.reason),
                  reject.detail.empty() ? "" : ": ", EscapeBytes(reject.detail)));
}

// The first picture that is broken is the one that is told of.
void PictureWork::Broken(int64_t picture, Error error) {
  MutexLock lock(mutex_);
  if (picture >= failed_at_) return;
  failed_at_ = picture;
  error_ = std::move(error);
}

void PictureWork::Finish() {
  Bytes output;
  std::optional<Error> error;
  {
    MutexLock lock(mutex_);
    output = std::exchange(output_, {});
    error = error_;
  }
  if (error) return done_(std::unexpected(*std::move(error)));
  const model::Model& model = served_->loaded.model();
  const dataset::Size size = SizeOf(*served_);
  const int64_t channels = model.recipe->geometry.channel_count(), rows = std::ssize(pictures_);
  done_(infer::Tensor{
      .name = model.inputs.front().name,
      .dtype = served_->loaded.session().pixels() ? infer::DType::kUint8 : model.inputs.front().dtype,
      .shape = recipe_.layout == dataset::Layout::kNchw
                   ? infer::Shape{rows, channels, size.height, size.width}
                   : infer::Shape{rows, size.height, size.width, channels},
      .data = std::move(output)});
}

}  // namespace weir::serve
