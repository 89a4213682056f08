// The extension module weir._weir: a thin front to feed::Feed, dataset::Recipe and prepare::PrepareSet. The
// package weir/ has what users call.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/thread.h"
#include "dataset/preparer.h"
#include "dataset/recipe.h"
#include "feed/feed.h"
#include "feed/picture.h"
#include "pinned_memory.h"
#include "prepare/prepare.h"
#include "prepare/sources.h"
#include "prepare/summary_text.h"

namespace nb = nanobind;

namespace weir::python {
namespace {

// Raises the exception of Python that fits the error.
[[noreturn]] void Raise(const Error& error) {
  PyObject* type = PyExc_RuntimeError;
  if (error.code == ErrorCode::kInvalidArgument) type = PyExc_ValueError;
  if (error.code == ErrorCode::kNotFound) type = PyExc_FileNotFoundError;
  if (error.code == ErrorCode::kOverloaded) type = PyExc_MemoryError;
  if (error.code == ErrorCode::kIo) type = PyExc_OSError;
  PyErr_SetString(type, error.message.c_str());
  throw nb::python_error();
}

template <typename T>
T Get(Result<T> result) {
  if (!result) Raise(result.error());
  return *std::move(result);
}
void Get(const Status& status) {
  if (!status) Raise(status.error());
}

// One of several names; ValueError names them all.
template <typename T>
T OneOf(const char* what, const std::string& name, std::initializer_list<T> values) {
  std::string names;
  for (const T value : values) {
    if (ToString(value) == name) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", ToString(value));
  }
  Raise({ErrorCode::kInvalidArgument, fmt::format("{} is \"{}\": give one of {}", what, name, names)});
}

// Takes `key` out of the options if it is there.
template <typename T>
void Take(nb::dict& options, const char* key, T& value) {
  if (!options.contains(key)) return;
  nb::object given = options[key];
  PyDict_DelItemString(options.ptr(), key);
  if (given.is_none()) return;
  if (!nb::try_cast<T>(given, value))
    Raise({ErrorCode::kInvalidArgument,
           fmt::format("{} is {}: of another kind than it must be", key, nb::repr(given).c_str())});
}

void CheckAllTaken(const nb::dict& options) {
  for (const auto& [key, value] : options) {
    PyErr_Format(PyExc_TypeError, "there is no option %R", key.ptr());
    throw nb::python_error();
  }
}

feed::AugmentOptions TakeAugment(nb::dict& options) {
  feed::AugmentOptions augment;
  std::array<int, 2> size{augment.width, augment.height};
  Take(options, "size", size);
  augment.width = size[0];
  augment.height = size[1];
  std::string crop(ToString(augment.crop)), type(ToString(augment.type)), layout = "NHWC",
                                                                          orientation = "exif";
  Take(options, "crop", crop);
  augment.crop =
      OneOf("crop", crop, {feed::CropRule::kRandomResized, feed::CropRule::kCentre, feed::CropRule::kNone});
  std::array<double, 2> area{augment.area_low, augment.area_high},
      aspect{augment.aspect_low, augment.aspect_high};
  Take(options, "area", area);
  Take(options, "aspect", aspect);
  augment.area_low = area[0];
  augment.area_high = area[1];
  augment.aspect_low = aspect[0];
  augment.aspect_high = aspect[1];
  Take(options, "short_side", augment.short_side);
  Take(options, "flip", augment.flip);
  Take(options, "vertical_flip", augment.vertical_flip);
  Take(options, "rotation", augment.rotation);
  Take(options, "brightness", augment.jitter.brightness);
  Take(options, "contrast", augment.jitter.contrast);
  Take(options, "saturation", augment.jitter.saturation);
  Take(options, "hue", augment.jitter.hue);
  Take(options, "grayscale", augment.grayscale);
  Take(options, "mask_fill", augment.mask_fill);
  Take(options, "orientation", orientation);
  if (orientation != "exif" && orientation != "ignore")
    Raise({ErrorCode::kInvalidArgument, "orientation: give exif or ignore"});
  augment.orientation = orientation == "exif" ? dataset::Orientation::kExif : dataset::Orientation::kIgnore;
  Take(options, "dtype", type);
  augment.type =
      OneOf("dtype", type, {feed::ValueType::kUint8, feed::ValueType::kFloat16, feed::ValueType::kFloat32});
  Take(options, "layout", layout);
  if (layout != "NHWC" && layout != "NCHW") Raise({ErrorCode::kInvalidArgument, "layout: give NHWC or NCHW"});
  augment.layout = layout == "NCHW" ? dataset::Layout::kNchw : dataset::Layout::kNhwc;
  Take(options, "mean", augment.mean);
  Take(options, "std", augment.std);
  Get(feed::CheckAugment(augment));
  return augment;
}

feed::FeedOptions TakeOptions(nb::dict& options) {
  feed::FeedOptions feed;
  feed.augment = TakeAugment(options);
  std::string ends(ToString(feed.slice.ends)), sampler(ToString(feed.sampler.sampling)),
      bad(ToString(feed.bad));
  Take(options, "batch", feed.slice.batch);
  Take(options, "rank", feed.slice.rank);
  Take(options, "world", feed.slice.world);
  Take(options, "ends", ends);
  feed.slice.ends = OneOf("ends", ends, {feed::Ends::kDrop, feed::Ends::kPad, feed::Ends::kWrap});
  Take(options, "sampler", sampler);
  feed.sampler.sampling =
      OneOf("sampler", sampler,
            {feed::Sampling::kSequential, feed::Sampling::kGlobal, feed::Sampling::kBlocks,
             feed::Sampling::kWeighted, feed::Sampling::kBalanced});
  Take(options, "block", feed.sampler.block);
  Take(options, "window", feed.sampler.window);
  Take(options, "weights", feed.sampler.weights);
  std::vector<int64_t> subset;
  if (options.contains("subset") && !nb::object(options["subset"]).is_none()) {
    Take(options, "subset", subset);
    feed.sampler.subset = std::move(subset);
  } else {
    Take(options, "subset", subset);
  }
  Take(options, "seed", feed.seed);
  Take(options, "bad", bad);
  feed.bad = OneOf("bad", bad, {feed::BadPolicy::kReplace, feed::BadPolicy::kSkip, feed::BadPolicy::kStop});
  feed.threads = 0;
  Take(options, "threads", feed.threads);
  if (feed.threads == 0) feed.threads = UsableCpus();
  feed.prefetch = 4;
  Take(options, "prefetch", feed.prefetch);
  Take(options, "max_pixels", feed.decode.max_pixels);
  Take(options, "tolerate_damage", feed.decode.tolerate_damage);
  Take(options, "reads", feed.reads);
  Take(options, "cache_bytes", feed.cache.bytes);
  Take(options, "cache_folder", feed.cache.folder);
  Take(options, "cache_decoded", feed.cache.decoded);
  return feed;
}

// An array that shares the memory of `owner`.
template <typename Owner>
nb::object Share(const std::shared_ptr<Owner>& owner, void* data, std::initializer_list<size_t> shape,
                 nb::dlpack::dtype type) {
  auto* kept = new std::shared_ptr<Owner>(owner);
  // The deleter may run on any thread; it touches nothing of Python.
  const nb::capsule capsule(kept,
                            [](void* held) noexcept { delete static_cast<std::shared_ptr<Owner>*>(held); });
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.begin(), capsule, nullptr, type));
}

nb::dlpack::dtype TypeOf(feed::ValueType type) {
  if (type == feed::ValueType::kFloat32) return nb::dtype<float>();
  if (type == feed::ValueType::kFloat16) return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
  return nb::dtype<uint8_t>();
}

// A feed whose Next lets other threads of Python run, and hears Ctrl-C.
class Feed {
 public:
  Feed(const std::string& set, nb::dict options) {
    feed::SourceOptions source_options;
    Take(options, "index", source_options.index);
    Take(options, "verify", source_options.verify);
    std::string masks;
    Take(options, "masks", masks);
    std::optional<int> pinned;  // the GPU that reads the batches
    Take(options, "pin_memory", pinned);
    feed::FeedOptions feed_options = TakeOptions(options);
    CheckAllTaken(options);
    Result<std::unique_ptr<feed::Feed>> opened = Fail(ErrorCode::kInternal, "not opened");
    {
      const nb::gil_scoped_release release;
      opened = Open(set, source_options, masks, pinned, std::move(feed_options));
    }
    feed_ = Get(std::move(opened));
  }

  // Returns None at the end of an epoch; otherwise (rows, labels, samples, count, epoch, position, bad,
  // masks).
  nb::object Next() {
    const Busy busy(*this);
    // To give up the interpreter's lock for microseconds would cost up to its switch interval of 5 ms.
    auto got = Get(feed_->IsReady() ? feed_->Next() : AwaitNext());
    if (!got) return nb::none();
    return ToPython(*std::move(got));
  }

  int64_t BatchesLeft() const { return feed().BatchesLeft(); }
  int64_t BatchesPerEpoch() const { return feed().BatchesPerEpoch(); }
  std::string State() const { return feed::FormatState(feed().state()); }
  void SetState(const std::string& text) {
    const Busy busy(*this);
    const feed::FeedState state = Get(feed::ParseState(text));
    Status done;
    {
      const nb::gil_scoped_release release;
      done = feed_->SetState(state);
    }
    Get(done);
  }
  void SetEpoch(int64_t epoch) {
    const Busy busy(*this);
    Status done;
    {
      const nb::gil_scoped_release release;
      done = feed_->SetEpoch(epoch);
    }
    Get(done);
  }
  int64_t Images() const { return feed().source().size(); }
  std::vector<std::string> Classes() const { return feed().source().classes(); }
  nb::bytes Name(int64_t sample) const {
    if (sample < 0 || sample >= Images()) throw nb::index_error("no sample of this number");
    const std::string name = feed().source().Name(sample);
    return nb::bytes(name.data(), name.size());
  }
  // The form of the arrays: (name, type, shape of a row, shape of a mask or None).
  nb::tuple Form() const {
    const feed::AugmentOptions& augment = feed().options().augment;
    if (const auto records = feed().source().records())
      return nb::make_tuple("data", records->type, nb::tuple(nb::cast(records->shape)), nb::none());
    nb::object mask = nb::none();
    if (feed().options().masks) mask = nb::make_tuple(augment.height, augment.width);
    const nb::tuple shape = augment.layout == dataset::Layout::kNchw
                                ? nb::make_tuple(3, augment.height, augment.width)
                                : nb::make_tuple(augment.height, augment.width, 3);
    return nb::make_tuple("image", std::string(ToString(augment.type)), shape, mask);
  }
  nb::dict Counters() const {
    const feed::FeedCounters c = feed().counters();
    nb::dict counters;
    counters["samples"] = c.samples;
    counters["batches"] = c.batches;
    counters["rows"] = c.rows;
    counters["bytes_read"] = c.bytes;
    counters["cached"] = c.cached;
    counters["read_s"] = Seconds(c.read);
    counters["decode_s"] = Seconds(c.decode);
    counters["augment_s"] = Seconds(c.augment);
    counters["cpu_s"] = Seconds(c.cpu);
    counters["idle_s"] = Seconds(c.threads_idle);
    counters["wait_s"] = Seconds(c.consumer_wait);
    nb::dict bad;
    for (const auto& [reason, count] : c.bad) bad[reason.c_str()] = count;
    counters["bad"] = bad;
    return counters;
  }
  void Close() {
    const nb::gil_scoped_release release;
    feed_.reset();
  }

 private:
  // Refuses two threads at a time, which would take each other's batches.
  class Busy {
   public:
    explicit Busy(Feed& feed) : feed_(feed) {
      feed.feed();
      if (feed.busy_.exchange(true))
        throw std::runtime_error("another thread is waiting for this feed's next batch");
    }
    ~Busy() { feed_.busy_ = false; }

   private:
    Feed& feed_;
  };

  Result<std::unique_ptr<feed::Feed>> Open(const std::string& set, const feed::SourceOptions& source_options,
                                           const std::string& masks, std::optional<int> pinned,
                                           feed::FeedOptions options) {
    auto source = TRY(feed::OpenSource(set, source_options));
    if (!masks.empty()) options.masks = TRY(feed::OpenMasks(masks, *source, {}));
    if (pinned) options.memory = TRY(PinnedMemory(*pinned));
    return feed::Feed::Open(std::move(source), std::move(options), clock_);
  }

  // Lets other threads of Python run meanwhile.
  Result<std::optional<feed::Batch>> AwaitNext() {
    while (true) {
      {
        const nb::gil_scoped_release release;
        if (feed_->WaitUntil(clock_.Now() + 50ms)) return feed_->Next();
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  const feed::Feed& feed() const {
    if (!feed_) throw std::runtime_error("this feed is closed");
    return *feed_;
  }

  nb::object ToPython(feed::Batch batch) const {
    const feed::AugmentOptions& augment = feed_->options().augment;
    const auto rows = static_cast<size_t>(feed_->options().slice.batch);
    const auto width = static_cast<size_t>(augment.width), height = static_cast<size_t>(augment.height);
    const nb::dlpack::dtype type = TypeOf(augment.type);
    const auto record_bytes = feed_->row_bytes();
    nb::object pixels = feed_->source().records() ? Share(batch.rows, batch.rows->data(),
                                                          {rows, record_bytes}, nb::dtype<uint8_t>())
                        : augment.layout == dataset::Layout::kNchw
                            ? Share(batch.rows, batch.rows->data(), {rows, 3, height, width}, type)
                            : Share(batch.rows, batch.rows->data(), {rows, height, width, 3}, type);
    nb::object masks = nb::none();
    if (batch.masks != nullptr)
      masks = Share(batch.rows, batch.masks, {rows, height, width}, nb::dtype<uint8_t>());
    const auto labels = std::make_shared<std::vector<int64_t>>(std::move(batch.labels));
    const auto samples = std::make_shared<std::vector<int64_t>>(std::move(batch.samples));
    nb::list bad;
    for (const feed::BadSample& one : batch.bad)
      bad.append(
          nb::make_tuple(one.sample, std::string(image::ToString(one.reject.reason)), one.reject.detail));
    return nb::make_tuple(pixels, Share(labels, labels->data(), {rows}, nb::dtype<int64_t>()),
                          Share(samples, samples->data(), {rows}, nb::dtype<int64_t>()), batch.count,
                          batch.epoch, batch.position, bad, masks);
  }

  SteadyClock clock_;
  std::unique_ptr<feed::Feed> feed_;
  std::atomic<bool> busy_ = false;
};

// The chances of samples [first, first + count): what weir.draws returns.
nb::dict DrawMany(nb::dict options, int64_t width, int64_t height, uint64_t seed, uint64_t epoch,
                  int64_t first, int64_t count) {
  const feed::AugmentOptions augment = TakeAugment(options);
  CheckAllTaken(options);
  if (width < 1 || height < 1 || first < 0 || count < 0)
    throw nb::value_error("sizes are at least 1, numbers at least 0");
  const auto n = static_cast<size_t>(count);
  const auto boxes = std::make_shared<std::vector<int64_t>>(),
             orders = std::make_shared<std::vector<int64_t>>();
  const auto factors = std::make_shared<std::vector<double>>(),
             angles = std::make_shared<std::vector<double>>();
  const auto flips = std::make_shared<std::vector<uint8_t>>();
  for (int64_t i = first; i < first + count; ++i) {
    const feed::Draws d = feed::Draw(augment, width, height, {seed, epoch, static_cast<uint64_t>(i)});
    boxes->insert(boxes->end(), {d.box.x, d.box.y, d.box.width, d.box.height});
    flips->insert(flips->end(), {d.flip, d.vertical_flip, d.grayscale});
    angles->push_back(d.angle);
    factors->insert(factors->end(),
                    {d.jitter.brightness, d.jitter.contrast, d.jitter.saturation, d.jitter.hue});
    for (const auto step : d.jitter.order) orders->push_back(static_cast<int64_t>(step));
  }
  nb::dict draws;
  draws["box"] = Share(boxes, boxes->data(), {n, 4}, nb::dtype<int64_t>());
  draws["flips"] = Share(flips, flips->data(), {n, 3}, nb::dtype<uint8_t>());
  draws["angle"] = Share(angles, angles->data(), {n}, nb::dtype<double>());
  draws["factors"] = Share(factors, factors->data(), {n, 4}, nb::dtype<double>());
  draws["order"] = Share(orders, orders->data(), {n, 4}, nb::dtype<int64_t>());
  return draws;
}

// One picture with the chances of a sample: what weir.augment returns.
nb::object AugmentOne(const nb::bytes& encoded, nb::dict options, uint64_t seed, uint64_t epoch,
                      uint64_t sample) {
  const feed::AugmentOptions augment = TakeAugment(options);
  CheckAllTaken(options);
  const SteadyClock clock;
  feed::PictureMaker maker(augment, {}, clock);
  const auto row = std::make_shared<std::vector<uint64_t>>(augment.sample_bytes() / 8 + 1);
  const auto made = maker.MakeEncoded({static_cast<const std::byte*>(encoded.data()), encoded.size()},
                                      {seed, epoch, sample}, reinterpret_cast<std::byte*>(row->data()));
  if (!made)
    Raise({ErrorCode::kInvalidArgument,
           fmt::format("{}: {}", image::ToString(made.error().reason), made.error().detail)});
  const auto width = static_cast<size_t>(augment.width), height = static_cast<size_t>(augment.height);
  if (augment.layout == dataset::Layout::kNchw)
    return Share(row, row->data(), {3, height, width}, TypeOf(augment.type));
  return Share(row, row->data(), {height, width, 3}, TypeOf(augment.type));
}

// The recipe of a model, for weir.Model.
class Recipe {
 public:
  explicit Recipe(const std::string& path) : recipe_(Get(dataset::ReadRecipe(path))) {}

  nb::dict Facts() const {
    nb::dict facts;
    facts["input"] = recipe_.input;
    facts["output"] = recipe_.output;
    facts["softmax"] = recipe_.softmax;
    facts["first_class"] = recipe_.first_class;
    facts["labels"] =
        recipe_.labels.empty() ? std::vector<std::string>() : Get(dataset::ReadLabels(recipe_.labels));
    return facts;
  }

  // Returns the tensor of encoded pictures.
  nb::object Prepare(const std::vector<nb::bytes>& pictures) const {
    const std::optional<dataset::Size> size = recipe_.geometry.OutputSize();
    if (!size)
      throw nb::value_error(
          "the recipe gives pictures of different sizes: it needs a crop, or a size to resize to");
    const size_t bytes = dataset::InputBytes(recipe_, *size);
    std::vector<std::span<const std::byte>> encoded;
    for (const nb::bytes& picture : pictures)
      encoded.emplace_back(static_cast<const std::byte*>(picture.data()), picture.size());
    const auto tensor = std::make_shared<std::vector<uint64_t>>((bytes * pictures.size() + 7) / 8);
    Status done;
    {
      const nb::gil_scoped_release release;
      done = Write(encoded, bytes, reinterpret_cast<std::byte*>(tensor->data()));
    }
    Get(done);
    const auto height = static_cast<size_t>(size->height), width = static_cast<size_t>(size->width);
    const auto channels = static_cast<size_t>(recipe_.geometry.channel_count());
    const nb::dlpack::dtype type =
        recipe_.datatype == dataset::ElementType::kFp32 ? nb::dtype<float>() : nb::dtype<uint8_t>();
    if (recipe_.layout == dataset::Layout::kNchw)
      return Share(tensor, tensor->data(), {pictures.size(), channels, height, width}, type);
    return Share(tensor, tensor->data(), {pictures.size(), height, width, channels}, type);
  }

 private:
  Status Write(const std::vector<std::span<const std::byte>>& encoded, size_t bytes, std::byte* out) const {
    dataset::Preparer preparer(recipe_.geometry, {});
    for (size_t i = 0; i < encoded.size(); ++i) {
      const auto pixels = preparer.Prepare(encoded[i]);
      if (!pixels) {
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("picture {}: {}: {}", i, image::ToString(pixels.error().reason),
                                pixels.error().detail));
      }
      dataset::WriteInput(recipe_, **pixels, out + i * bytes);
    }
    return {};
  }

  const dataset::Recipe recipe_;
};

// Makes a prepared set; returns its summary as JSON. Hears Ctrl-C.
std::string Prepare(std::vector<std::string> sources, const std::string& folder, nb::dict given) {
  prepare::Options options{.folder = folder};
  prepare::SourceOptions wanted{.paths = std::move(sources)};
  std::string format(ToString(options.format)), recipe;
  int64_t sample = 0;
  uint64_t seed = 1;
  Take(given, "format", format);
  options.format = OneOf("format", format,
                         {dataset::SetFormat::kFiles, dataset::SetFormat::kTar, dataset::SetFormat::kTfrecord,
                          dataset::SetFormat::kRaw});
  Take(given, "recipe", recipe);
  if (!recipe.empty()) options.geometry = Get(dataset::ReadRecipe(recipe)).geometry;
  Take(given, "labels", wanted.labels);
  Take(given, "workers", options.workers);
  Take(given, "shard_bytes", options.shard_bytes);
  Take(given, "quality", options.jpeg.quality);
  Take(given, "replicate", options.replicate);
  Take(given, "no_duplicates", options.reject_duplicates);
  Take(given, "sample", sample);
  Take(given, "seed", seed);
  CheckAllTaken(given);
  if (options.jpeg.quality < 1 || options.jpeg.quality > 100) throw nb::value_error("quality: give 1 to 100");
  std::stop_source stop;
  wanted.fetch.stop = stop.get_token();
  const SteadyClock clock;
  Instant next_look = clock.Now();
  const auto make = [&]() -> Result<prepare::PrepareSummary> {
    const std::unique_ptr<prepare::Sources> opened = TRY(prepare::Sources::Open(std::move(wanted)));
    prepare::Feed feed = opened->MakeFeed();
    if (sample > 0) {
      feed = prepare::Pick(std::move(feed), prepare::SampleOf(feed.count, sample, seed));
      feed.arguments.sample = sample;
      feed.arguments.seed = seed;
    }
    return prepare::PrepareSet(feed, options, clock, stop.get_token(), [&](const prepare::Progress&) {
      if (clock.Now() < next_look) return;
      next_look = clock.Now() + 50ms;
      const nb::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() != 0) stop.request_stop();
    });
  };
  Result<prepare::PrepareSummary> summary = Fail(ErrorCode::kInternal, "not made");
  {
    const nb::gil_scoped_release release;
    summary = make();
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!summary) Raise(summary.error());
  return DumpJson(prepare::MakeResult(*summary, folder).ToJson());
}

}  // namespace
}  // namespace weir::python

NB_MODULE(_weir, m) {
  using weir::python::Feed;
  nb::set_leak_warnings(false);  // batches may outlive the interpreter
  nb::class_<Feed>(m, "Feed", nb::is_weak_referenceable())
      .def(nb::init<const std::string&, nb::dict>())
      .def("next", &Feed::Next)
      .def("batches_left", &Feed::BatchesLeft)
      .def("batches_per_epoch", &Feed::BatchesPerEpoch)
      .def("state", &Feed::State)
      .def("set_state", &Feed::SetState)
      .def("set_epoch", &Feed::SetEpoch)
      .def("images", &Feed::Images)
      .def("classes", &Feed::Classes)
      .def("name", &Feed::Name)
      .def("form", &Feed::Form)
      .def("counters", &Feed::Counters)
      .def("close", &Feed::Close);
  nb::class_<weir::python::Recipe>(m, "Recipe")
      .def(nb::init<const std::string&>())
      .def("facts", &weir::python::Recipe::Facts)
      .def("prepare", &weir::python::Recipe::Prepare);
  m.def("prepare", &weir::python::Prepare);
  m.def("draws", &weir::python::DrawMany);
  m.def("augment", &weir::python::AugmentOne);
}
