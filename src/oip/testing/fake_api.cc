#include "oip/testing/fake_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::oip {
namespace {

constexpr size_t kRemembered = 1000;  // exchanges; a benchmark has millions

Status Known(const std::string& model, const std::string& version) {
  if (model != "identity") return Fail(ErrorCode::kNotFound, fmt::format("unknown model '{}'", model));
  if (version.empty() || version == "1") return {};
  return Fail(ErrorCode::kNotFound, fmt::format("model 'identity' has no version '{}'", version));
}

}  // namespace

Status FakeApi::ModelReady(const std::string& model, const std::string& version) {
  TRY_STATUS(Known(model, version));
  return ready;
}

Result<ModelMetadata> FakeApi::Metadata(const std::string& model, const std::string& version) {
  TRY_STATUS(Known(model, version));
  return ModelMetadata{.name = "identity",
                       .versions = {"1"},
                       .platform = "emulated",
                       .inputs = {{"INPUT0", infer::DType::kFp32, {-1}}},
                       .outputs = {{"OUTPUT0", infer::DType::kFp32, {-1}}}};
}

Result<ModelConfig> FakeApi::Config(const std::string& model, const std::string& version) {
  TRY_STATUS(Known(model, version));
  // name: "identity", as the first field of an inference.ModelConfig.
  return ModelConfig{{{"name", "identity"}, {"max_batch_size", 0}}, "\x0a\x08identity"};
}

Result<std::vector<ModelStatistics>> FakeApi::Statistics(const std::string& model,
                                                         const std::string& version) {
  if (!model.empty()) TRY_STATUS(Known(model, version));
  ModelStatistics statistics{
      .name = "identity", .version = "1", .last_inference_ms = 5, .inference_count = 3};
  statistics.execution_count = 2;
  statistics.success = {2, 7us};
  statistics.batches = {{.batch_size = 1, .compute_infer = {2, 4us}}};
  return std::vector{statistics};
}

std::vector<IndexEntry> FakeApi::Index(bool ready_only) {
  std::vector<IndexEntry> entries = {{"identity", "1", "READY", ""}};
  if (!ready_only) entries.push_back({"broken", "", "UNAVAILABLE", "no file"});
  return entries;
}

void FakeApi::Load(const std::string& model, const std::string& config, Done done) {
  Note(fmt::format("load {} {}", model, config));
  done(load);
}

void FakeApi::Unload(const std::string& model, Done done) {
  Note(fmt::format("unload {}", model));
  done(load);
}

Status FakeApi::RegisterRegion(const Region& region) {
  MutexLock lock(mutex_);
  regions_.push_back(region);
  return {};
}

Status FakeApi::UnregisterRegion(const std::string& name) {
  MutexLock lock(mutex_);
  std::erase_if(regions_, [&](const Region& region) { return name.empty() || region.name == name; });
  return {};
}

Result<std::vector<Region>> FakeApi::Regions(const std::string& name) {
  MutexLock lock(mutex_);
  std::vector<Region> found = regions_;
  std::erase_if(found, [&](const Region& region) { return !name.empty() && region.name != name; });
  if (found.empty() && !name.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("unknown region '{}'", name));
  return found;
}

Status FakeApi::RegisterCudaRegion(const CudaRegion& region) {
  MutexLock lock(mutex_);
  cuda_regions_.push_back(region);
  return {};
}

Status FakeApi::UnregisterCudaRegion(const std::string& name) {
  MutexLock lock(mutex_);
  std::erase_if(cuda_regions_, [&](const CudaRegion& region) { return name.empty() || region.name == name; });
  return {};
}

Result<std::vector<CudaRegion>> FakeApi::CudaRegions(const std::string& name) {
  MutexLock lock(mutex_);
  std::vector<CudaRegion> found = cuda_regions_;
  std::erase_if(found, [&](const CudaRegion& region) { return !name.empty() && region.name != name; });
  if (found.empty() && !name.empty())
    return Fail(ErrorCode::kNotFound, fmt::format("unknown region '{}'", name));
  return found;
}

void FakeApi::Infer(InferRequest request, infer::Completion completion) {
  if (infer) return infer(std::move(request), std::move(completion));
  if (Status known = Known(request.request.model, request.request.version); !known) {
    return completion.Answer(std::unexpected(known.error()), {});
  }
  infer::Response response{.model = "identity", .version = "1", .id = std::move(request.request.id)};
  response.outputs = std::move(request.request.inputs);
  for (infer::Tensor& output : response.outputs) output.name = "OUTPUT0";
  completion.Answer(std::move(response), {});
}

void FakeApi::Observe(const RequestTrace& exchange) {
  MutexLock lock(mutex_);
  if (exchanges_.size() < kRemembered) exchanges_.push_back(exchange);
}

std::vector<RequestTrace> FakeApi::exchanges() {
  MutexLock lock(mutex_);
  return exchanges_;
}

std::vector<std::string> FakeApi::calls() {
  MutexLock lock(mutex_);
  return calls_;
}

void FakeApi::Note(std::string call) {
  MutexLock lock(mutex_);
  calls_.push_back(std::move(call));
}

}  // namespace weir::oip
