#include "watch/request.h"

#include <utility>

namespace weir::watch {
namespace {

Status CheckRequest(const WatchRequest& request) {
  const auto refuse = [](const char* why) { return Fail(ErrorCode::kInvalidArgument, why); };
  const bool detects = !request.options.detect.model.empty(), embeds = !request.embed.empty();
  if (embeds == !request.classify.empty() && (!detects || embeds))
    return refuse("give one of --embed MODEL and --classify MODEL, or --detect MODEL alone");
  if ((request.events == "-") + (request.frames == "-") + (request.json == "-") > 1)
    return refuse("only one of --json, --events and --frames can be standard output");
  if (!request.identities.folder.empty() && !embeds)
    return refuse("--identities looks up embeddings: give --embed MODEL");
  if (request.options.lookup_delay > Duration{} && request.identities.folder.empty())
    return refuse("--storage-delay slows look-ups: give --identities DIR");
  return {};
}

// The model and the recipe are the stage's own; the engine is that of all.
ModelOptions WithEngine(const ModelOptions& own, const ModelOptions& engine) {
  ModelOptions options = engine;
  options.model = own.model;
  options.recipe = own.recipe;
  return options;
}

}  // namespace

Result<WatchOptions> CompleteRequest(const WatchRequest& request) {
  TRY_STATUS(CheckRequest(request));
  WatchOptions options = request.options;
  for (const std::string& stream : request.streams) options.streams.push_back(TRY(ParseStream(stream)));
  const bool embeds = !request.embed.empty();
  options.task = embeds ? Pipeline::Task::kEmbed : Pipeline::Task::kClassify;
  options.infer.model = embeds ? request.embed : request.classify;
  options.detect = WithEngine(options.detect, request.engine);
  options.infer = WithEngine(options.infer, request.engine);
  if (request.find_max) options.duration = request.trial;
  return options;
}

std::vector<StreamSpec> CopiesOf(const std::vector<StreamSpec>& streams, int64_t count) {
  std::vector<StreamSpec> copies;
  for (int64_t i = 0; i < count; ++i) {
    StreamSpec copy = streams[static_cast<size_t>(i) % streams.size()];
    copy.made.seed += static_cast<uint64_t>(i);
    copies.push_back(std::move(copy));
  }
  return copies;
}

}  // namespace weir::watch
