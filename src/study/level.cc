#include "study/level.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <vector>

#include "base/nearest.h"
#include "infer/choices.h"
#include "infer/device.h"
#include "study/factor.h"

namespace weir::study {
namespace {

std::unexpected<Error> Refuse(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

Status CheckKeys(const Json& map, std::initializer_list<std::string_view> names) {
  const std::vector<std::string_view> known(names);
  for (const auto& [key, value] : map.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const auto meant = Nearest(key, known);
    return Refuse(fmt::format("no key \"{}\" here{}; known: {}", key,
                              meant ? fmt::format(", did you mean {}?", *meant) : "",
                              fmt::join(known, ", ")));
  }
  return {};
}

Result<double> CheckNumber(const Json& map, const char* key, double low, double high) {
  const auto found = map.find(key);
  if (found == map.end() || !found->is_number()) return Refuse(fmt::format("wants {}, a number", key));
  const double value = found->get<double>();
  if (!(value >= low && value <= high)) {
    return Refuse(fmt::format("{}: {} is not within {} to {}", key, DumpJson(*found), low, high));
  }
  return value;
}

Result<std::string> CheckText(const Json& map, const char* key) {
  const auto found = map.find(key);
  if (found == map.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) {
    return Refuse(fmt::format("{} wants a text", key));
  }
  return found->get<std::string>();
}

Status CheckTexts(const Json& map, const char* key) {
  const Json& list = map.at(key);
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (!list.is_array() || list.empty() || !std::ranges::all_of(list, is_text)) {
    return Refuse(
        fmt::format("{} wants a list of words, such as [tritonserver, --model-repository=models]", key));
  }
  return {};
}

bool IsUrl(std::string_view text, std::string_view scheme) {
  return text.starts_with(scheme) && text.substr(scheme.size()).starts_with("://") &&
         text.size() > scheme.size() + 3;
}

// Returns the name of a server that has none of its own: the program, the image or the address.
std::string NameOf(const Json& server) {
  if (server.contains("command"))
    return std::filesystem::path(server["command"][0].get<std::string>()).filename();
  return server.contains("image") ? server["image"].get<std::string>() : server["url"].get<std::string>();
}

// CPUs as taskset takes them: numbers and ranges between commas.
bool IsCpuList(std::string_view text) {
  size_t digits = 0;
  bool range = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      if (++digits > 4) return false;
      continue;
    }
    if (digits == 0 || (c != ',' && c != '-') || (c == '-' && range)) return false;
    range = c == '-';
    digits = 0;
  }
  return digits > 0;
}

}  // namespace

Result<Json> CheckInteger(const Json& level, int64_t low, int64_t high) {
  const bool fits = level.is_number_integer() && (!level.is_number_unsigned() ||
                                                  level.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (!fits || level.get<int64_t>() < low || level.get<int64_t>() > high) {
    return Refuse(fmt::format("{} is not a whole number from {} to {}", DumpJson(level), low, high));
  }
  return Json(level.get<int64_t>());
}

Result<Json> CheckServer(const Json& level) {
  if (level == "weir") return level;
  if (!level.is_object()) {
    return Refuse(fmt::format("{} is neither weir nor a map with command, image or url", DumpJson(level)));
  }
  TRY_STATUS(CheckKeys(level, {"name", "command", "image", "arguments", "url", "ready", "http", "grpc",
                               "model", "repository"}));
  const auto ways = level.count("command") + level.count("image") + level.count("url");
  if (ways != 1) return Refuse("wants exactly one of command, image and url");
  Json server = level;
  for (const char* key : {"name", "image", "url", "ready", "http", "grpc", "model", "repository"}) {
    if (level.contains(key)) TRY_STATUS(CheckText(level, key));
  }
  for (const char* key : {"command", "arguments"}) {
    if (level.contains(key)) TRY_STATUS(CheckTexts(level, key));
  }
  if (level.contains("arguments") && !level.contains("image"))
    return Refuse("arguments are an image's; put them into command");
  if (level.contains("repository")) {
    if (level.contains("url")) return Refuse("repository: a server that is running already has its own");
    if (!level.contains("model"))
      return Refuse("repository wants model: the folder there whose config.pbtxt is set");
  }
  for (const char* key : {"url", "ready", "http", "grpc"}) {
    if (!level.contains(key)) continue;
    const std::string url = level[key].get<std::string>();
    // "http" and "grpc" want their own scheme, the others any.
    const auto wanted = FindChoice(infer::kProtocols, key);
    const bool is_url = std::ranges::any_of(infer::kProtocols, [&](const auto& protocol) {
      return IsUrl(url, protocol.word) && (!wanted || *wanted == protocol.value);
    });
    if (!is_url) {
      return Refuse(fmt::format("{}: {} is not {}://HOST:PORT", key, DumpJson(level[key]),
                                ToString(wanted.value_or(infer::Protocol::kHttp))));
    }
  }
  if (!level.contains("url") && !level.contains("ready"))
    return Refuse("wants ready: the URL that answers once the server can be asked");
  if (!level.contains("name")) server["name"] = NameOf(level);
  return server;
}

// Live streams: how many, how fast, and within how long a frame is to be answered.
Result<Json> CheckStreams(const Json& level) {
  TRY_STATUS(CheckKeys(level, {"streams", "fps", "deadline_ms"}));
  Json streams{{"streams", TRY_CONTEXT(CheckInteger(level["streams"], 1, 1024), "streams")}};
  if (!level.contains("fps")) return Refuse("wants fps, frames a second of each stream");
  streams["fps"] = TRY(CheckNumber(level, "fps", 0.1, 1000));
  streams["deadline_ms"] =
      level.contains("deadline_ms") ? TRY(CheckNumber(level, "deadline_ms", 1, 60'000)) : 100.0;
  return streams;
}

Result<Json> CheckLoad(const Json& level) {
  if (level == "application" || level == "closed") return level;
  if (!level.is_object()) {
    return Refuse(fmt::format("{} is none of application, closed, {{rate_per_s: N}}, {{streams: N, fps: N}}",
                              DumpJson(level)));
  }
  if (level.contains("streams")) return CheckStreams(level);
  TRY_STATUS(CheckKeys(level, {"rate_per_s", "distribution"}));
  const double rate = TRY(CheckNumber(level, "rate_per_s", 1e-3, 1e8));
  using infer::Distribution;
  const Json poisson(ToString(Distribution::kPoisson)), constant(ToString(Distribution::kConstant));
  const Json distribution = level.contains("distribution") ? level["distribution"] : poisson;
  if (distribution != poisson && distribution != constant)
    return Refuse(fmt::format("distribution: {} is none of {}, {}", DumpJson(distribution), DumpJson(poisson),
                              DumpJson(constant)));
  return Json{{"rate_per_s", rate}, {"distribution", distribution}};
}

Result<Json> CheckServerBatching(const Json& level) {
  if (level == "model" || level == "off") return level;
  if (!level.is_object()) {
    return Refuse(fmt::format("{} is none of model, off, {{max_batch: N, delay_us: N}}", DumpJson(level)));
  }
  TRY_STATUS(CheckKeys(level, {"max_batch", "delay_us"}));
  if (!level.contains("max_batch")) return Refuse("wants max_batch, rows");
  Json batching{{"max_batch", TRY_CONTEXT(CheckInteger(level["max_batch"], 1, 65536), "max_batch")}};
  const Json delay = level.contains("delay_us") ? level["delay_us"] : Json(0);
  batching["delay_us"] = TRY_CONTEXT(CheckInteger(delay, 0, 60'000'000), "delay_us");
  return batching;
}

Result<Json> CheckNetwork(const Json& level) {
  constexpr double kLeast = 1e-3, kMost = 400;  // Gbit/s
  if (level == "unshaped") return level;
  if (level.is_number()) return CheckNetwork(Json{{"rate_gbit_per_s", level}});
  if (level == "variable") return CheckNetwork(Json{{"variable", Json::object()}});
  if (!level.is_object()) {
    return Refuse(fmt::format("{} is none of unshaped, variable, a rate in Gbit/s, {{rate_gbit_per_s: N}}",
                              DumpJson(level)));
  }
  TRY_STATUS(CheckKeys(level, {"rate_gbit_per_s", "variable", "delay_us"}));
  if (level.contains("rate_gbit_per_s") && level.contains("variable")) {
    return Refuse("wants either rate_gbit_per_s or variable, which has rates of its own");
  }
  Json network = Json::object();
  if (level.contains("rate_gbit_per_s")) {
    network["rate_gbit_per_s"] = TRY(CheckNumber(level, "rate_gbit_per_s", kLeast, kMost));
  }
  if (level.contains("variable")) {
    Json variable{{"low_gbit_per_s", 1.0}, {"high_gbit_per_s", 5.0}, {"every_ms", 100.0}};
    if (!level["variable"].is_object())
      return Refuse("variable wants {low_gbit_per_s, high_gbit_per_s, every_ms}");
    TRY_STATUS(CheckKeys(level["variable"], {"low_gbit_per_s", "high_gbit_per_s", "every_ms"}));
    variable.update(level["variable"]);
    const double low = TRY(CheckNumber(variable, "low_gbit_per_s", kLeast, kMost));
    const double high = TRY(CheckNumber(variable, "high_gbit_per_s", kLeast, kMost));
    const double every = TRY(CheckNumber(variable, "every_ms", 1, 60'000));
    if (low > high) return Refuse(fmt::format("low_gbit_per_s: {} is above high_gbit_per_s: {}", low, high));
    network["variable"] = {{"low_gbit_per_s", low}, {"high_gbit_per_s", high}, {"every_ms", every}};
  }
  if (level.contains("delay_us")) network["delay_us"] = TRY(CheckNumber(level, "delay_us", 0, 1e7));
  if (network.empty()) return Refuse("wants rate_gbit_per_s, variable or delay_us");
  return network;
}

Result<Json> CheckDevice(const Json& level) {
  if (!level.is_string()) return Refuse(fmt::format("{} is no device such as cuda:0", DumpJson(level)));
  if (const auto devices = infer::ParseDevices(level.get<std::string>()); !devices)
    return Refuse(devices.error().message);
  return level;
}

std::string NetworkText(const Json& level) {
  std::string text;
  if (level.contains("rate_gbit_per_s"))
    text = fmt::format("{:.6g} Gbit/s", level["rate_gbit_per_s"].get<double>());
  if (level.contains("variable")) {
    const Json& variable = level["variable"];
    text = fmt::format("variable, {:.6g} to {:.6g} Gbit/s", variable.value("low_gbit_per_s", 0.0),
                       variable.value("high_gbit_per_s", 0.0));
  }
  if (level.contains("delay_us")) {
    text += fmt::format("{}{:.6g} us away", text.empty() ? "" : ", ", level["delay_us"].get<double>());
  }
  return text;
}

Result<Json> CheckPlacement(const Json& level) {
  if (level == "shared") return level;
  if (!level.is_object())
    return Refuse(fmt::format("{} is neither shared nor {{server: CPUS, client: CPUS}}", DumpJson(level)));
  TRY_STATUS(CheckKeys(level, {"server", "client"}));
  Json placement = Json::object();
  for (const char* side : {"server", "client"}) {
    if (!level.contains(side)) return Refuse("wants both server and client");
    const std::string cpus = level[side].is_string() ? level[side].get<std::string>() : DumpJson(level[side]);
    if (!IsCpuList(cpus))
      return Refuse(fmt::format("{}: {} are not CPUs such as \"0-3,6\"", side, DumpJson(level[side])));
    placement[side] = cpus;
  }
  return placement;
}

Result<Json> CheckLimits(const Json& level) {
  if (level == "none") return level;
  if (!level.is_object() || level.empty())
    return Refuse(
        fmt::format("{} is neither none nor {{serve: CORES, feed: CORES, prepare: CORES}}", DumpJson(level)));
  TRY_STATUS(CheckKeys(level, {"serve", "feed", "prepare"}));
  Json limits = Json::object();
  for (const char* phase : {"serve", "feed", "prepare"}) {
    if (level.contains(phase)) limits[phase] = TRY(CheckNumber(level, phase, 0.01, 4096));
  }
  return limits;
}

bool Offers(const Json& server, std::string_view protocol) {
  if (!server.is_object() || server.contains(protocol)) return true;
  for (const char* key : {"url", "ready"}) {
    if (server.contains(key) && IsUrl(server[key].get<std::string>(), protocol)) return true;
  }
  return false;
}

bool IsLoopback(const Json& server) {
  const std::string url = server["url"].get<std::string>();
  const std::string_view host = std::string_view(url).substr(url.find("://") + 3);
  return host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]");
}

}  // namespace weir::study
