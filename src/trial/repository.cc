#include "trial/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/seed.h"
#include "base/thread.h"
#include "model/config_change.h"
#include "model/config_edit.h"

namespace weir::trial {
namespace {

// Returns the folder of the repository in which `parent` lies, where the copies of it are made; of the model,
// where that is in the model's folder. Empty if `parent` lies elsewhere.
std::filesystem::path FolderOf(const std::string& parent, const OtherServer& other) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::weakly_canonical(other.repository, error);
  const auto below = std::filesystem::weakly_canonical(parent, error).lexically_relative(root);
  if (below.empty() || *below.begin() == ".." || *below.begin() == ".") return {};
  auto part = below.begin();
  std::filesystem::path folder = root / *part;
  if (*part == other.model && ++part != below.end()) folder /= *part;
  return folder;
}

// A copy that shares the bytes where the file system can. `left_out`: a folder that is not copied, canonical.
Status LinkTree(const std::string& from, const std::string& to, const std::filesystem::path& left_out = {}) {
  std::error_code error;
  TRY_STATUS(MakeFolders(to));
  for (const auto& entry : std::filesystem::directory_iterator(from, error)) {
    const std::string name = entry.path().filename().string(), target = to + "/" + name;
    if (entry.is_directory(error)) {
      if (!left_out.empty() && std::filesystem::canonical(entry.path(), error) == left_out) continue;
      TRY_STATUS(LinkTree(entry.path().string(), target, left_out));
      continue;
    }
    const std::string source = std::filesystem::canonical(entry.path(), error).string();
    if (!error) std::filesystem::create_hard_link(source, target, error);
    if (error) std::filesystem::copy_file(source, target, error);
    if (error) return FailErrno(target, error.value());
  }
  return error ? Status(FailErrno(from, error.value())) : Status{};
}

// The model's files as a repository has them, without a configuration.
Status PutFiles(const model::Model& model, const std::string& folder) {
  if (!model.folder.empty()) {
    TRY_STATUS(LinkTree(model.folder, folder));
    std::error_code error;
    std::filesystem::remove(folder + "/config.pbtxt", error);
    return {};
  }
  TRY_STATUS(MakeFolders(folder + "/1"));
  std::error_code error;
  std::filesystem::create_hard_link(model.path, folder + "/1/model.onnx", error);
  if (error) std::filesystem::copy_file(model.path, folder + "/1/model.onnx", error);
  if (error) return FailErrno(folder, error.value());
  if (!model.recipe) return {};
  return WriteFileWhole(folder + "/recipe.yaml", dataset::FormatRecipe(*model.recipe));
}

model::ConfigChange ChangeFor(const Setting& setting, const model::Model& model) {
  model::ConfigChange change;
  if (!setting.engine.empty()) change.parameters["engine"] = setting.engine;
  if (!setting.is_emulated()) {
    change.parameters["precision"] = ToString(setting.precision);
    if (!setting.device.empty()) change.parameters["device"] = setting.device;
    if (setting.preprocess) change.parameters["preprocess"] = ToString(*setting.preprocess);
    if (setting.cuda_graph) change.parameters["cuda_graph"] = "on";
    if (setting.threads > 0) change.parameters["threads"] = fmt::format("{}", setting.threads);
    // One a thread where nobody asks for a number: the server may have fewer CPUs than this process.
    const bool asked =
        setting.streams > 0 || setting.instances > 1 || model::SessionDefaults(model).streams > 0;
    change.parameters["streams"] = fmt::format("{}", asked ? StreamsOf(setting, model) : 0);
  }
  if (setting.server_batching) {
    change.dynamic_batching = {.on = setting.server_batching->max_batch > 0,
                               .max_queue_delay_us = setting.server_batching->delay_us};
    if (setting.server_batching->max_batch > 0) change.max_batch_size = setting.server_batching->max_batch;
  }
  if (model.serving_max_batch > 0 &&
      std::max(model.serving_max_batch, change.max_batch_size.value_or(0)) < setting.batch)
    change.max_batch_size = setting.batch;
  return change;
}

std::string NameIn(const std::string& parent, const std::string& contents) {
  return fmt::format("{}/{:016x}", parent, Seed(1).Stream(contents).value());
}

}  // namespace

int StreamsOf(const Setting& setting, const model::Model& model) {
  if (setting.is_emulated()) return 0;
  // Each instance has the streams: two factors, and neither hides the other.
  if (setting.streams > 0 || setting.instances > 1) return std::max(1, setting.streams) * setting.instances;
  const infer::SessionOptions options = model::SessionDefaults(model);
  if (options.streams > 0) return options.streams;
  if (setting.is_accelerated() || infer::IsAccelerator(options.devices)) return 1;  // on each device
  const int threads = setting.threads > 0 ? setting.threads : options.threads;
  return threads > 0 ? std::min(threads, UsableCpus()) : UsableCpus();
}

std::string ServedConfig(const Setting& setting, const model::Model& model) {
  return model::ChangeConfig(model.config, ChangeFor(setting, model));
}

Result<std::string> ServedConfig(const Setting& setting, const OtherServer& other) {
  const std::string path = other.repository + "/" + other.model + "/config.pbtxt";
  std::error_code error;
  if (!std::filesystem::is_directory(other.repository + "/" + other.model, error))
    return Fail(ErrorCode::kNotFound, fmt::format("server {}: {} has no model {}", other.name,
                                                  EscapeBytes(other.repository), EscapeBytes(other.model)));
  const std::string text = std::filesystem::exists(path, error) ? TRY(ReadTextFile(path)) : "";
  model::ConfigEdit edit;
  if (setting.instances_given) edit.instances = setting.instances;
  if (const auto& batching = setting.server_batching) {
    edit.dynamic_batching = {.on = batching->max_batch > 0, .max_queue_delay_us = batching->delay_us};
    if (batching->max_batch > 0) edit.max_batch_size = std::max(batching->max_batch, setting.batch);
  }
  return TRY_CONTEXT(model::EditConfig(text, edit), EscapeBytes(path));
}

Result<std::string> MakeRepository(const std::string& parent, const Setting& setting,
                                   const model::Model& model) {
  const std::string config = ServedConfig(setting, model);
  const std::string repository = NameIn(parent, model.name + "\n" + model.path + "\n" + config);
  std::error_code error;
  const std::string folder = repository + "/" + model.name;
  if (std::filesystem::exists(folder + "/config.pbtxt", error)) return repository;
  std::filesystem::remove_all(repository, error);
  TRY_STATUS(PutFiles(model, folder));
  TRY_STATUS(WriteFileWhole(folder + "/config.pbtxt", config));  // the last: with it the folder is whole
  return repository;
}

Result<std::string> MakeRepository(const std::string& parent, const Setting& setting,
                                   const OtherServer& other) {
  const std::string config = TRY(ServedConfig(setting, other));
  const std::string repository = NameIn(parent, other.repository + "\n" + other.model + "\n" + config);
  std::error_code error;
  if (std::filesystem::exists(repository, error)) return repository;
  // Made under another name, so that one that is there is whole.
  const std::string unfinished = repository + ".part", folder = unfinished + "/" + other.model;
  std::filesystem::remove_all(unfinished, error);
  TRY_STATUS(LinkTree(other.repository, unfinished, FolderOf(parent, other)));
  std::filesystem::remove(folder + "/config.pbtxt", error);
  TRY_STATUS(WriteFileWhole(folder + "/config.pbtxt", config));
  std::filesystem::rename(unfinished, repository, error);
  if (error) return FailErrno(repository, error.value());
  return repository;
}

}  // namespace weir::trial
