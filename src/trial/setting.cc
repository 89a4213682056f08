#include "trial/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/config.h"
#include "study/factor.h"

namespace weir::trial {
namespace {

// Returns the level, or the table's default.
Json LevelOf(const Json& factors, std::string_view name) {
  const auto found = factors.find(std::string(name));
  return found != factors.end() ? *found : study::FindFactor(name)->otherwise.value_or(Json());
}

// The level as one of `choices`, by the words that all programs use for them.
template <typename Value, size_t kCount>
Result<Value> ChoiceOf(const Json& factors, std::string_view name, const Choices<Value, kCount>& choices) {
  const auto word = LevelOf(factors, name).get<std::string>();
  const auto found = FindChoice(choices, word);
  if (!found) return Fail(ErrorCode::kInvalidArgument, fmt::format("{} {} is no level of it", name, word));
  return *found;
}

// The levels that the client gets as flags without code of the factor's own.
void ReadFlags(const Json& factors, Setting& setting) {
  for (const study::Factor& factor : study::Factors()) {
    const Json level = LevelOf(factors, factor.name);
    if (level.is_null() || (factor.otherwise && level == *factor.otherwise)) continue;
    const auto put = [&](std::string_view flag, std::vector<std::string>& flags) {
      if (!flag.empty()) flags.insert(flags.end(), {std::string(flag), study::LevelText(factor.name, level)});
    };
    put(factor.flags.run, setting.run_flags);
    put(factor.flags.load, setting.load_flags);
  }
}

std::vector<std::string> Texts(const Json& map, const char* key) {
  return map.value(key, std::vector<std::string>{});
}

OtherServer ReadServer(const Json& server) {
  return {.name = server.value("name", std::string("server")),
          .command = Texts(server, "command"),
          .image = server.value("image", std::string()),
          .url = server.value("url", std::string()),
          .arguments = Texts(server, "arguments"),
          .ready = server.value("ready", std::string()),
          .http = server.value("http", std::string()),
          .grpc = server.value("grpc", std::string()),
          .model = server.value("model", std::string()),
          .repository = server.value("repository", std::string())};
}

Network ReadNetwork(const Json& level) {
  Network network;
  if (!level.is_object()) return network;
  if (level.contains("rate_gbit_per_s")) network.gbit_per_s = level["rate_gbit_per_s"].get<double>();
  if (level.contains("variable")) {
    const Json& variable = level["variable"];
    network.variable = {.low = variable.value("low_gbit_per_s", 1.0),
                        .high = variable.value("high_gbit_per_s", 5.0),
                        .every = FromSeconds(1e-3 * variable.value("every_ms", 100.0))};
  }
  network.delay = FromSeconds(1e-6 * level.value("delay_us", 0.0));
  return network;
}

Status ReadLoad(const Json& factors, Setting& setting) {
  const Json load = factors.value("load", Json("application"));
  if (load == "closed") {
    setting.load = ClosedLoad{};
  } else if (load.is_object() && load.contains("streams")) {
    setting.load = StreamsLoad{.streams = load["streams"].get<int>(),
                               .fps = TRY(GetNumber(load, "fps")),
                               .deadline_ms = TRY(GetNumber(load, "deadline_ms"))};
  } else if (load.is_object()) {
    setting.load = OpenLoad{.per_second = TRY(GetNumber(load, "rate_per_s")),
                            .distribution = TRY(GetString(load, "distribution"))};
  }
  return {};
}

Status ReadPhases(const Json& factors, Setting& setting) {
  const study::Beside beside = TRY(ChoiceOf(factors, "beside", study::kBeside));
  setting.feed_beside = beside == study::Beside::kFeed || beside == study::Beside::kBoth;
  setting.prepare_beside = beside == study::Beside::kPrepare || beside == study::Beside::kBoth;
  const Json limits = factors.value("limits", Json("none"));
  if (!limits.is_object()) return {};
  const auto cores = [&](const char* phase) {
    return limits.contains(phase) ? std::optional(limits[phase].get<double>()) : std::nullopt;
  };
  setting.limits = {.serve = cores("serve"), .feed = cores("feed"), .prepare = cores("prepare")};
  return {};
}

Status ReadPlaces(const Json& factors, Setting& setting) {
  const Json placement = factors.value("placement", Json("shared"));
  if (!placement.is_object()) return {};
  setting.server_cpus = TRY(model::ParseCpus(placement.value("server", std::string())));
  setting.client_cpus = TRY(model::ParseCpus(placement.value("client", std::string())));
  return {};
}

}  // namespace

Result<Setting> ReadSetting(const Json& factors) try {
  Setting setting;
  setting.architecture = TRY(ChoiceOf(factors, "architecture", study::kArchitectures));
  setting.protocol = TRY(ChoiceOf(factors, "protocol", infer::kProtocols));
  setting.mode = TRY(ChoiceOf(factors, "mode", infer::kModes));
  setting.data_path = TRY(ChoiceOf(factors, "data_path", study::kDataPaths));
  const study::Sent sent = TRY(ChoiceOf(factors, "payload", study::kSent));
  setting.shared_memory = sent == study::Sent::kSharedMemory;
  setting.payload = FindChoice(infer::kPayloads, ToString(sent)).value_or(Payload::kTensor);
  setting.model = factors.value("model", std::string());
  if (const Json server = factors.value("server", Json("weir")); server.is_object())
    setting.server = ReadServer(server);
  if (factors.contains("in_flight")) setting.in_flight = factors["in_flight"].get<int>();
  TRY_STATUS(ReadLoad(factors, setting));
  TRY_STATUS(ReadPhases(factors, setting));
  setting.batch = LevelOf(factors, "batch").get<int>();
  if (factors.contains("images")) setting.images = factors["images"].get<int64_t>();
  setting.replication = LevelOf(factors, "replication").get<int>();
  setting.engine = factors.value("engine", std::string());
  if (const auto accelerator = factors.value("accelerator", std::string("none")); accelerator != "none")
    setting.engine = accelerator;
  setting.device = factors.value("device", std::string());
  if (const int gpus = LevelOf(factors, "gpus").get<int>(); factors.contains("gpus")) {
    setting.device = "cuda:0";
    for (int gpu = 1; gpu < gpus; ++gpu) setting.device += fmt::format(",cuda:{}", gpu);
  }
  if (factors.contains("preprocess"))
    setting.preprocess = TRY(ChoiceOf(factors, "preprocess", infer::kPreprocess));
  setting.cuda_graph = TRY(ChoiceOf(factors, "cuda_graph", infer::kOffOn));
  setting.precision = TRY(ChoiceOf(factors, "precision", infer::kPrecisions));
  setting.threads = LevelOf(factors, "threads").get<int>();
  setting.streams = LevelOf(factors, "streams").get<int>();
  setting.instances = LevelOf(factors, "instances").get<int>();
  setting.instances_given = factors.contains("instances");
  setting.servers = LevelOf(factors, "servers").get<int>();
  setting.clients = LevelOf(factors, "clients").get<int>();
  setting.balancer = TRY(ChoiceOf(factors, "balancer", study::kBalancers));
  ReadFlags(factors, setting);
  const Json batching = factors.value("server_batching", Json("model"));
  if (batching == "off") setting.server_batching = ServerBatching{};
  if (batching.is_object())
    setting.server_batching = ServerBatching{.max_batch = batching.value("max_batch", 8),
                                             .delay_us = batching.value("delay_us", int64_t{0})};
  setting.network = ReadNetwork(factors.value("network", Json("unshaped")));
  TRY_STATUS(ReadPlaces(factors, setting));
  if (factors.contains("page_cache"))
    setting.page_cache = TRY(ChoiceOf(factors, "page_cache", study::kPageCaches));
  return setting;
} catch (const JsonError& error) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("a factor's level is of another kind: {}", error.what()));
}

}  // namespace weir::trial
