#include "serve/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "base/utf8.h"
#include "model/model.h"

namespace weir::serve {
namespace {

// Whether the session has the threads and streams that are asked for: an engine takes no more than there are.
Status CheckShare(const infer::SessionOptions& asked, const infer::Session& session) {
  const auto refuse = [](std::string what) { return Fail(ErrorCode::kUnsupported, std::move(what)); };
  if (session.threads() > 0 && asked.threads > session.threads()) {
    return refuse(
        fmt::format("threads is {}, and this process may use {} CPUs: give at most {}, or 0 for all",
                    asked.threads, session.threads(), session.threads()));
  }
  if (asked.streams <= session.streams()) return {};
  const std::string remedy =
      session.threads() == 0
          ? "give its engine as many (streams=N)"
          : fmt::format("give at most {}, one a thread, or leave it out", session.streams());
  return refuse(
      fmt::format("instance_group (or the parameter streams) asks for {} instances, and the engine "
                  "computes {} side by side: {}",
                  asked.streams, session.streams(), remedy));
}

std::vector<int> BatchesOf(const model::Model& model) {
  if (model.fixed_batch) return {*model.fixed_batch};
  return infer::WarmBatches(std::max(1, model.serving_max_batch));
}

class FileLoader final : public Loader {
 public:
  FileLoader(LoaderOptions options, const Clock& clock, Metrics& metrics, Log log)
      : options_(std::move(options)), clock_(clock), metrics_(metrics), log_(std::move(log)) {}

  Result<std::vector<std::string>> Versions(const Wanted& wanted) override {
    // Metrics and gRPC carry names as UTF-8 text.
    if (!IsUtf8(wanted.path.substr(wanted.path.rfind('/') + 1))) {
      return Fail(ErrorCode::kInvalidArgument,
                  "the name of its folder is not UTF-8 text, which clients cannot send: rename the folder");
    }
    return model::ServedVersions(wanted.path, {.config = wanted.config, .link_roots = options_.link_roots});
  }

  Result<std::unique_ptr<LoadedModel>> Load(const Wanted& wanted) override {
    model::Model model = TRY(model::OpenModel(
        wanted.path,
        {.version = wanted.version, .config = wanted.config, .link_roots = options_.link_roots}));
    model.name = wanted.name;
    // An index is chosen by who owns the files of the model, not by who may send a configuration.
    if (!wanted.config.empty() && model.parameters.contains("identities"))
      return Fail(ErrorCode::kInvalidArgument, "parameter \"identities\" is taken from config.pbtxt only");
    Result<std::unique_ptr<LoadedModel>> loaded;
    // On a thread of its own, so that the CPUs it is kept to are those of what it starts and no others.
    StartThread("load", [&](const std::stop_token&) {
      loaded = Start(std::move(model), wanted.version);
    }).join();
    return loaded;
  }

 private:
  Result<std::unique_ptr<LoadedModel>> Start(model::Model model, const std::string& version) const {
    TRY_STATUS(model::KeepToCpusOf(model));
    infer::SessionOptions wanted = model::SessionDefaults(model);
    if (!options_.device.empty())
      wanted.devices = TRY_CONTEXT(infer::ParseDevices(options_.device), "--device");
    if (options_.threads > 0) wanted.threads = options_.threads;
    wanted.cache_dir = options_.cache_dir;
    wanted.batches = BatchesOf(model);
    auto preprocessed = model::WithPreprocess(model, std::nullopt, std::move(wanted));
    if (!preprocessed) return std::unexpected(std::move(preprocessed).error());
    wanted = *std::move(preprocessed);
    model::OpenedSession opened = TRY(model::OpenSession(model, options_.engine, wanted, clock_));
    if (const Status share = CheckShare(wanted, *opened.session); !share)
      return Context("model " + model.name, share.error());
    auto identities = IdentityBinding::Open(model);
    if (!identities) return Context("model " + model.name, identities.error());
    LoadedModel::Parts parts{.version = version,
                             .engine = std::move(opened.engine),
                             .session = std::move(opened.session),
                             .engine_spec = model::EngineOf(model, options_.engine),
                             .identities = *std::move(identities),
                             .max_queue = options_.max_queue};
    parts.model = std::move(model);
    auto loaded = TRY(LoadedModel::Create(std::move(parts), clock_, metrics_));
    TRY_STATUS(WarmUp(*loaded));
    Tell(*loaded);
    return loaded;
  }

  // Only what the configuration asks for must succeed: not every model can do something with zeros.
  Status WarmUp(LoadedModel& loaded) const {
    const Status warm = loaded.WarmUp();
    if (warm) return {};
    const model::Model& model = loaded.model();
    if (!model.config.warm_ups.empty()) return Context("model " + model.name, warm.error());
    log_(LogLevel::kWarning,
         fmt::format("model {} version {}: {}", model.name, loaded.version(), warm.error().message));
    return {};
  }

  void Tell(const LoadedModel& loaded) const {
    const model::Model& model = loaded.model();
    for (const model::LeftOut& output : model.left_out) {
      log_(LogLevel::kWarning,
           fmt::format(
               "model {} version {}: output \"{}\" is left out: it is of type {}, which cannot be sent{}",
               model.name, loaded.version(), output.name, output.datatype,
               output.datatype == "SEQUENCE" ? "; export a classifier without ZipMap (zipmap=False)" : ""));
    }
    if (model.config.dynamic_batching && model.fixed_batch) {
      log_(LogLevel::kWarning,
           fmt::format("model {} version {}: dynamic batching cannot help: {}; export the model with a free "
                       "first dimension",
                       model.name, loaded.version(), model.not_batchable));
    } else if (model.config.dynamic_batching && model.serving_max_batch <= 1) {
      log_(LogLevel::kWarning,
           fmt::format("model {} version {}: dynamic batching cannot help: max_batch_size is {}", model.name,
                       loaded.version(), model.serving_max_batch));
    }
  }

  const LoaderOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  const Log log_;
};

}  // namespace

std::unique_ptr<Loader> MakeFileLoader(LoaderOptions options, const Clock& clock, Metrics& metrics, Log log) {
  return std::make_unique<FileLoader>(std::move(options), clock, metrics, std::move(log));
}

}  // namespace weir::serve
