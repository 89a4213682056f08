#include "trial/setting.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/config.h"

namespace weir::trial {
namespace {

template <typename Enum, size_t kCount>
Result<Enum> WordOf(const Json& factors, const char* name, const std::array<const char*, kCount>& words,
                    size_t usual) {
  const std::string word = factors.value(name, std::string(words.at(usual)));
  for (size_t i = 0; i < kCount; ++i) {
    if (word == words.at(i)) return static_cast<Enum>(i);
  }
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} {} is no level of it", name, word));
}

constexpr std::array kArchitectures = {"in-process", "microservice", "distributed"};
constexpr std::array kProtocols = {"http", "grpc"};
constexpr std::array kModes = {"sync", "async"};
constexpr std::array kDataPaths = {"files", "files-at-model-size", "shards", "memory"};
constexpr std::array kPayloads = {"tensor", "pixels", "image", "shared-memory"};

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
          .model = server.value("model", std::string())};
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
  } else if (load.is_object()) {
    setting.load = OpenLoad{.per_second = TRY(GetNumber(load, "rate_per_s")),
                            .distribution = TRY(GetString(load, "distribution"))};
  }
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

std::string_view ToString(Architecture architecture) {
  return kArchitectures.at(static_cast<size_t>(architecture));
}
std::string_view ToString(Protocol protocol) { return kProtocols.at(static_cast<size_t>(protocol)); }
std::string_view ToString(Mode mode) { return kModes.at(static_cast<size_t>(mode)); }

Result<Setting> ReadSetting(const Json& factors) try {
  Setting setting;
  setting.architecture = TRY(WordOf<Architecture>(factors, "architecture", kArchitectures, 0));
  setting.protocol = TRY(WordOf<Protocol>(factors, "protocol", kProtocols, 0));
  setting.mode = TRY(WordOf<Mode>(factors, "mode", kModes, 1));
  setting.data_path = TRY(WordOf<DataPath>(factors, "data_path", kDataPaths, 0));
  setting.payload = TRY(WordOf<Payload>(factors, "payload", kPayloads, 0));
  setting.model = factors.value("model", std::string());
  if (const Json server = factors.value("server", Json("weir")); server.is_object())
    setting.server = ReadServer(server);
  if (factors.contains("in_flight")) setting.in_flight = factors["in_flight"].get<int>();
  TRY_STATUS(ReadLoad(factors, setting));
  setting.batch = factors.value("batch", 8);
  if (factors.contains("images")) setting.images = factors["images"].get<int64_t>();
  setting.replication = factors.value("replication", 1);
  setting.engine = factors.value("engine", std::string());
  if (const auto accelerator = factors.value("accelerator", std::string("none")); accelerator != "none")
    setting.engine = accelerator;
  setting.precision = factors.value("precision", std::string("f32"));
  setting.threads = factors.value("threads", 0);
  setting.streams = factors.value("streams", 0);
  setting.instances = factors.value("instances", 1);
  setting.decode_threads = factors.value("decode_threads", 0);
  const Json batching = factors.value("server_batching", Json("model"));
  if (batching == "off") setting.server_batching = ServerBatching{};
  if (batching.is_object())
    setting.server_batching = ServerBatching{.max_batch = batching.value("max_batch", 8),
                                             .delay_us = batching.value("delay_us", int64_t{0})};
  setting.network = ReadNetwork(factors.value("network", Json("unshaped")));
  TRY_STATUS(ReadPlaces(factors, setting));
  if (factors.contains("page_cache"))
    setting.page_cache = factors["page_cache"] == "cold" ? PageCache::kCold : PageCache::kWarm;
  return setting;
} catch (const Json::exception& error) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("a factor's level is of another kind: {}", error.what()));
}

}  // namespace weir::trial
