#include "serve/identities.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/thread.h"
#include "identity/index.h"
#include "model/hash.h"

namespace weir::serve {
namespace {

constexpr int64_t kMostNames = 100;

std::unexpected<Error> Invalid(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// Returns the number of a parameter, or `otherwise` where it is not there.
Result<double> NumberOf(const model::Model& model, const std::string& key, double low, double high,
                        double otherwise) {
  const auto found = model.parameters.find(key);
  if (found == model.parameters.end()) return otherwise;
  const std::string& text = found->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return value;
  return Invalid(
      fmt::format("parameter \"{}\" is \"{}\"; it must be a number from {} to {}", key, text, low, high));
}

}  // namespace

IdentityBinding::IdentityBinding() = default;
IdentityBinding::~IdentityBinding() = default;

Result<std::unique_ptr<IdentityBinding>> IdentityBinding::Open(const model::Model& model) {
  const auto named = model.parameters.find("identities");
  if (named == model.parameters.end()) {
    for (const char* key : {"identities_false_alarms", "identities_threshold", "identities_best"}) {
      if (model.parameters.contains(key))
        return Invalid(fmt::format("parameter \"{}\" goes with \"identities\", which is missing", key));
    }
    return nullptr;
  }
  std::unique_ptr<IdentityBinding> binding(new IdentityBinding);
  binding->false_alarms_ = TRY(NumberOf(model, "identities_false_alarms", 1e-6, 0.9, 0.01));
  binding->threshold_ = TRY(NumberOf(model, "identities_threshold", -1, 1, -2));
  binding->best_ = static_cast<int64_t>(TRY(NumberOf(model, "identities_best", 1, kMostNames, 5)));
  if (model.serving_max_batch < 1)
    return Invalid("identities: the model has no batch dimension: set max_batch_size");
  const std::string path = named->second.starts_with('/') || model.folder.empty()
                               ? named->second
                               : model.folder + "/" + named->second;
  // Without the model's hash a configuration could open any index that this user may read.
  identity::Index::Options options{.access = identity::Index::Access::kRead, .background = true};
  options.model_hash = TRY(model::HashOfModel(model));
  options.threads = UsableCpus();
  binding->index_ = TRY_CONTEXT(identity::Index::Open(path, options), "identities");
  const auto dimension = static_cast<int64_t>(binding->index_->dimension());
  std::vector<std::string> fitting, given;
  for (const infer::TensorInfo& output : model.outputs) {
    given.push_back(fmt::format("{} {}", output.name, infer::ToString(output.shape)));
    int64_t values = 1;
    bool free = false;
    for (size_t i = 1; i < output.shape.size(); ++i) {
      free = free || output.shape[i] < 0;
      values *= std::max<int64_t>(output.shape[i], 1);
    }
    if (output.dtype == infer::DType::kFp32 && output.shape.size() > 1 && (free || values == dimension))
      fitting.push_back(output.name);
  }
  if (fitting.size() != 1) {
    return Invalid(fmt::format(
        "identities: the index holds vectors of {} values, and {} FP32 outputs of the model have so many a "
        "row ({}): one must; build the index from this model's embeddings, or list one output in its "
        "config.pbtxt",
        dimension, fitting.size(), fmt::join(given, ", ")));
  }
  binding->output_ = fitting.front();
  return binding;
}

infer::TensorInfo IdentityBinding::input() const {
  return {.name = "embedding",
          .dtype = infer::DType::kFp32,
          .shape = {-1, static_cast<int64_t>(index_->dimension())}};
}

std::vector<infer::TensorInfo> IdentityBinding::outputs() const {
  return {{.name = "name", .dtype = infer::DType::kBytes, .shape = {-1, best_}},
          {.name = "score", .dtype = infer::DType::kFp32, .shape = {-1, best_}}};
}

Result<std::vector<infer::Tensor>> IdentityBinding::LookUp(const infer::Tensor& embeddings) const {
  const size_t dimension = index_->dimension();
  const int64_t rows = embeddings.shape.empty() ? 1 : embeddings.shape.front();
  if (embeddings.dtype != infer::DType::kFp32 ||
      embeddings.data.size() != static_cast<size_t>(rows) * dimension * sizeof(float)) {
    return Invalid(fmt::format("embeddings of shape {}, and the index has {} values a row",
                               infer::ToString(embeddings.shape), dimension));
  }
  std::vector<std::vector<float>> queries(static_cast<size_t>(rows), std::vector<float>(dimension));
  for (size_t row = 0; row < queries.size(); ++row) {
    std::memcpy(queries[row].data(), embeddings.data.data() + row * dimension * sizeof(float),
                dimension * sizeof(float));
  }
  identity::Index::SearchOptions options{.best = static_cast<size_t>(best_)};
  options.threshold = threshold_ >= -1 ? threshold_ : TRY(index_->Threshold(false_alarms_));
  const auto found = TRY(index_->Search(queries, options));
  std::string names;
  std::vector<float> scores;
  for (const auto& matches : found) {
    for (int64_t i = 0; i < best_; ++i) {
      const bool there = i < std::ssize(matches);
      const std::string_view name = there ? matches[static_cast<size_t>(i)].name : std::string_view();
      const auto size = static_cast<uint32_t>(name.size());
      names.append(reinterpret_cast<const char*>(&size), sizeof(size));
      names += name;
      scores.push_back(there ? static_cast<float>(matches[static_cast<size_t>(i)].score) : -1.0F);
    }
  }
  std::vector<infer::Tensor> outputs;
  outputs.push_back({"name", infer::DType::kBytes, {rows, best_}, Bytes::Copy(names)});
  outputs.push_back(
      {"score", infer::DType::kFp32, {rows, best_}, Bytes::Copy(std::as_bytes(std::span(scores)))});
  return outputs;
}

}  // namespace weir::serve
