#include "load/inputs/picture_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "dataset/preparer.h"
#include "dataset/set.h"
#include "dataset/source.h"
#include "load/inputs/requests.h"

namespace weir::load {
namespace {

using infer::DType;
using infer::ModelInfo;
using infer::Shape;
using infer::TensorInfo;
using infer::ToString;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// The half of the recipe that the client does: of kPixels the server scales and orders the layout.
dataset::Recipe ClientRecipe(dataset::Recipe recipe, Payload payload) {
  if (payload != Payload::kPixels) return recipe;
  recipe.input.clear();
  recipe.layout = dataset::Layout::kNhwc;
  recipe.datatype = dataset::ElementType::kUint8;
  return recipe;
}

// One picture as the model's input takes it, without the dimension of the batch.
struct Item {
  DType dtype = DType::kBytes;
  Shape shape;
  int64_t bytes = 0;  // 0: each has its own
};

Result<Item> ItemOf(const dataset::Recipe& recipe, Payload payload) {
  if (payload == Payload::kImage) return Item{};
  const std::optional<dataset::Size> size = recipe.geometry.OutputSize();
  if (!size) return Invalid("the recipe gives every picture its own size: add a crop");
  const int64_t channels = recipe.geometry.channel_count();
  Item item{.dtype = recipe.datatype == dataset::ElementType::kFp32 ? DType::kFp32 : DType::kUint8};
  item.shape = recipe.layout == dataset::Layout::kNchw ? Shape{channels, size->height, size->width}
                                                       : Shape{size->height, size->width, channels};
  item.bytes = static_cast<int64_t>(dataset::InputBytes(recipe, *size));
  return item;
}

Result<TensorInfo> InputOf(const ModelInfo& model, const dataset::Recipe& recipe, const Item& item) {
  if (model.inputs.size() != 1)
    return Invalid(
        fmt::format("pictures fill one input, and model \"{}\" has {}", model.name, model.inputs.size()));
  const TensorInfo& input = model.inputs.front();
  if (item.dtype != DType::kBytes && !recipe.input.empty() && recipe.input != input.name)
    return Invalid(fmt::format("the recipe's input \"{}\" is not in the model, which has \"{}\"",
                               recipe.input, input.name));
  const bool fits = input.dtype == item.dtype && !input.shape.empty() &&
                    FitShape(Shape(input.shape.begin() + 1, input.shape.end()), item.shape);
  if (!fits) {
    Shape made = item.shape;
    made.insert(made.begin(), -1);
    return Invalid(
        fmt::format("pictures make {} {}, but input \"{}\" of model \"{}\" takes {} {}: another "
                    "payload or recipe is needed",
                    ToString(item.dtype), ToString(made), input.name, model.name, ToString(input.dtype),
                    ToString(input.shape)));
  }
  return input;
}

// Pictures in each request.
Result<int> BatchOf(const ModelInfo& model, const TensorInfo& input, int batch) {
  if (batch < 1) return Invalid(fmt::format("a batch of {}: give 1 or more", batch));
  if (model.max_batch > 0 && batch > model.max_batch)
    return Invalid(
        fmt::format("model \"{}\" takes batches of up to {}, and {} pictures are asked for: make "
                    "the batch smaller",
                    model.name, model.max_batch, batch));
  const int64_t fixed = model.max_batch > 0 ? -1 : input.shape.front();
  if (fixed < 0) return batch;
  if (fixed == 0 || fixed > kMaxPictureBytes / 4 || (batch != 1 && batch != fixed))
    return Invalid(
        fmt::format("model \"{}\" takes {} pictures at a time, and {} are asked for: leave the "
                    "batch at 1, which means as many as it takes",
                    model.name, fixed, batch));
  return static_cast<int>(fixed);
}

Status CheckSets(const dataset::Listing& listing, const dataset::Recipe& recipe, Payload payload) {
  for (const auto& set : listing.sets) {
    const dataset::SetFacts& facts = set->facts();
    const dataset::Geometry& geometry = recipe.geometry;
    const bool raw = facts.format == dataset::SetFormat::kRaw;
    if (payload == Payload::kImage) {
      if (!facts.geometry && !raw) continue;
      return Invalid(
          fmt::format("set {} is prepared already, and the server would prepare its pictures again: "
                      "send their pixels (--payload pixels), or the original pictures",
                      set->folder()));
    }
    const bool same =
        facts.geometry && dataset::GeometryHash(*facts.geometry) == dataset::GeometryHash(geometry);
    const bool usable =
        raw ? same && facts.size == geometry.OutputSize() && facts.channels == geometry.channel_count()
            : same || !facts.geometry;
    if (!usable)
      return Invalid(
          fmt::format("set {} was prepared for another geometry than the model's recipe: prepare it "
                      "again with --recipe of this model, or give the original pictures",
                      set->folder()));
  }
  return {};
}

// Makes one picture of a request after the other.
class Reader {
 public:
  Reader(const dataset::Listing& listing, const dataset::Recipe& recipe, const Item& item,
         const image::DecodeOptions& decode)
      : listing_(listing),
        recipe_(recipe),
        item_(item),
        from_pictures_(recipe.geometry, decode),
        from_prepared_({.channels = recipe.geometry.channels, .orientation = dataset::Orientation::kIgnore},
                       decode) {}

  image::Accepted<Bytes> Read(const dataset::Input& input) {
    auto loaded = dataset::LoadInput(listing_, input);
    if (!loaded) return std::unexpected(std::move(loaded).error());
    if (item_.dtype != DType::kBytes) return Prepare(input, *loaded);
    if (loaded->empty()) return std::unexpected(image::Reject{image::RejectReason::kEmpty, "no bytes"});
    return ToElement(loaded->text());
  }

 private:
  image::Accepted<Bytes> Prepare(const dataset::Input& input, const Bytes& loaded) {
    const dataset::PreparedSet* set =
        input.set < 0 ? nullptr : listing_.sets[static_cast<size_t>(input.set)].get();
    const dataset::Size size = *recipe_.geometry.OutputSize();
    if (set && set->facts().format == dataset::SetFormat::kRaw) {
      return Write(dataset::PixelView(reinterpret_cast<const uint8_t*>(loaded.data()), size.width,
                                      size.height, set->facts().channels));
    }
    const bool prepared = set && set->facts().geometry;
    const auto pixels = (prepared ? from_prepared_ : from_pictures_).Prepare(loaded.span());
    if (!pixels) return std::unexpected(pixels.error());
    if ((*pixels)->width != size.width || (*pixels)->height != size.height)
      return std::unexpected(image::Reject{image::RejectReason::kWrongGeometry, "not of the recipe's size"});
    return Write(**pixels);
  }

  Bytes Write(const dataset::PixelView& pixels) const {
    Bytes row = Bytes::AllocateUninitialized(static_cast<size_t>(item_.bytes));
    dataset::WriteInput(recipe_, pixels, row.mutable_data());
    return row;
  }

  const dataset::Listing& listing_;
  const dataset::Recipe& recipe_;
  const Item& item_;
  dataset::Preparer from_pictures_;  // as they come: the whole geometry
  dataset::Preparer from_prepared_;  // already of the geometry: decoded only
};

struct Rows {
  std::vector<Bytes> rows;
  std::vector<std::string> names;
  int64_t rejected = 0;
  bool all = true;  // of the listing
};

// The pictures of `limit` requests, or of kMaxPictureBytes.
Rows ReadRows(const dataset::Listing& listing, Reader& reader, int64_t limit) {
  Rows read;
  int64_t bytes = 0;
  for (const dataset::Input& input : listing.inputs) {
    if (std::ssize(read.rows) == limit) {
      read.all = false;
      break;
    }
    auto row = reader.Read(input);
    if (!row) {
      read.rejected += 1;
      continue;
    }
    bytes += static_cast<int64_t>(row->size());
    if (bytes > kMaxPictureBytes) {
      read.all = false;
      break;
    }
    read.rows.push_back(*std::move(row));
    read.names.push_back(input.name);
  }
  return read;
}

}  // namespace

Result<PictureRequests> MakePictureRequests(const ModelInfo& model, const std::string& version,
                                            const dataset::Recipe& recipe,
                                            const std::vector<std::string>& paths,
                                            const PictureOptions& options) {
  if (options.pool_limit < 1)
    return Invalid(fmt::format("a pool of {} requests: give 1 or more", options.pool_limit));
  const dataset::Recipe own = ClientRecipe(recipe, options.payload);
  const Item item = TRY(ItemOf(own, options.payload));
  const TensorInfo input = TRY(InputOf(model, own, item));
  const int batch = TRY(BatchOf(model, input, options.batch));
  if (item.bytes > kMaxPictureBytes / batch)
    return Invalid(fmt::format("{} pictures of {} bytes are more than 512 MiB: make the batch smaller", batch,
                               item.bytes));
  const dataset::Listing listing = TRY(dataset::ListInputs(paths));
  TRY_STATUS(CheckSets(listing, own, options.payload));

  Reader reader(listing, own, item, options.decode);
  auto [rows, names, rejected, all] = ReadRows(listing, reader, int64_t{options.pool_limit} * batch);
  if (rows.empty())
    return Invalid(
        fmt::format("none of {} pictures can be used, {} of them are rejected: give pictures that "
                    "can be decoded",
                    listing.inputs.size(), rejected));
  if (std::ssize(rows) >= batch && (!all || JoinedBytes(rows, batch) > kMaxPictureBytes))
    rows.resize(rows.size() - rows.size() % static_cast<size_t>(batch));
  if (JoinedBytes(rows, batch) > kMaxPictureBytes)
    return Invalid(
        fmt::format("a request of {} pictures is more than 512 MiB: make the batch smaller", batch));

  names.resize(rows.size());
  PictureRequests made{.names = std::move(names), .batch = batch, .rejected = rejected};
  made.left_out = std::ssize(listing.inputs) - std::ssize(made.names) - made.rejected;
  std::vector<Bytes> payloads = JoinRows(std::move(rows), batch);
  payloads.resize(std::min(payloads.size(), static_cast<size_t>(options.pool_limit)));
  Shape shape = item.shape;
  shape.insert(shape.begin(), batch);
  for (Bytes& payload : payloads) {
    made.requests.push_back(StartRequest(model, version, options.outputs));
    made.requests.back().inputs.push_back(
        {.name = input.name, .dtype = input.dtype, .shape = shape, .data = std::move(payload)});
  }
  return made;
}

}  // namespace weir::load
