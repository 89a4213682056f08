#include "study/factor.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/nearest.h"
#include "study/level.h"

namespace weir::study {
namespace {

using Check = Result<Json> (*)(const Json&);

struct Entry {
  Factor factor;
  Check check = nullptr;
};

Result<Json> Word(const Json& level, std::initializer_list<std::string_view> words) {
  if (level.is_string()) {
    for (const std::string_view word : words) {
      if (level.get_ref<const std::string&>() == word) return level;
    }
  }
  const std::vector<std::string_view> known(words);
  const auto meant = level.is_string() ? Nearest(level.get_ref<const std::string&>(), known) : std::nullopt;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} is none of {}{}", DumpJson(level), fmt::join(known, ", "),
                          meant ? fmt::format("; did you mean {}?", *meant) : ""));
}

Result<Json> Text(const Json& level) {
  if (level.is_string() && !level.get_ref<const std::string&>().empty()) return level;
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} is not a text", DumpJson(level)));
}

template <int64_t kLow, int64_t kHigh>
Result<Json> Whole(const Json& level) {
  return CheckInteger(level, kLow, kHigh);
}

Result<Json> EmulatedOr(const Json& level, std::initializer_list<std::string_view> words) {
  if (level.is_string() && level.get_ref<const std::string&>().starts_with("emulated:")) return level;
  auto word = Word(level, words);
  if (!word) word.error().message += ", emulated:SETTINGS";
  return word;
}

const std::vector<Entry>& Entries() {
  static const std::vector<Entry> kEntries{
      {{"architecture", "in-process, microservice or distributed", "in-process"},
       [](const Json& l) { return Word(l, {"in-process", "microservice", "distributed"}); }},
      {{"model", "an .onnx file, a model folder or a URL", {}}, Text},
      {{"server", "weir, or a map with command, image or url", "weir"}, CheckServer},
      {{"protocol", "http or grpc", "http"}, [](const Json& l) { return Word(l, {"http", "grpc"}); }},
      {{"mode", "sync or async", "async"}, [](const Json& l) { return Word(l, {"sync", "async"}); }},
      {{"in_flight", "batches submitted and unanswered, 1 to 4096", {}}, Whole<1, 4096>},
      {{"load", "application, closed or {rate_per_s: N}", "application"}, CheckLoad},
      {{"batch", "pictures a batch, 1 to 65536", 8}, Whole<1, 65536>},
      {{"data_path", "files, files-at-model-size, shards or memory", "files"},
       [](const Json& l) { return Word(l, {"files", "files-at-model-size", "shards", "memory"}); }},
      {{"payload", "tensor, pixels, image or shared-memory", "tensor"},
       [](const Json& l) { return Word(l, {"tensor", "pixels", "image", "shared-memory"}); }},
      {{"images", "pictures of the data that are used", {}}, Whole<1, 1'000'000'000>},
      {{"replication", "real copies of each, 1 is none", 1}, Whole<1, 1'000'000>},
      {{"engine", "onnxruntime, openvino or emulated:SETTINGS", {}},
       [](const Json& l) { return EmulatedOr(l, {"onnxruntime", "openvino"}); }},
      {{"accelerator", "none or emulated:SETTINGS", "none"},
       [](const Json& l) { return EmulatedOr(l, {"none"}); }},
      {{"precision", "f32, bf16 or f16", "f32"},
       [](const Json& l) { return Word(l, {"f32", "bf16", "f16"}); }},
      {{"threads", "CPU threads of the engine, 0: all", 0}, Whole<0, 4096>},
      {{"streams", "batches that compute side by side, 0: as the engine likes", 0}, Whole<0, 4096>},
      {{"instances", "of the model in the server, 1 to 1024", 1}, Whole<1, 1024>},
      {{"server_batching", "model, off or {max_batch: N, delay_us: N}", "model"}, CheckServerBatching},
      {{"decode_threads", "of the application, 0: one a core in async, 1 in sync", 0}, Whole<0, 4096>},
      {{"network", "unshaped, a rate in Gbit/s, variable, or a map", "unshaped"}, CheckNetwork},
      {{"placement", "shared, or {server: CPUS, client: CPUS}", "shared"}, CheckPlacement},
      {{"page_cache", "warm or cold", "warm"}, [](const Json& l) { return Word(l, {"warm", "cold"}); }},
  };
  return kEntries;
}

// Factors whose levels say by themselves what they are.
bool SpeaksForItself(std::string_view factor, const Json& level) {
  if (factor == "data_path" || factor == "page_cache") return false;
  return level.is_string() || factor == "server" || factor == "network";
}

}  // namespace

const std::vector<Factor>& Factors() {
  static const std::vector<Factor> kFactors = [] {
    std::vector<Factor> factors;
    for (const Entry& entry : Entries()) factors.push_back(entry.factor);
    return factors;
  }();
  return kFactors;
}

std::vector<std::string_view> FactorNames() {
  std::vector<std::string_view> names;
  for (const Factor& factor : Factors()) names.push_back(factor.name);
  return names;
}

bool IsFactor(std::string_view name) {
  return std::ranges::any_of(Factors(), [name](const Factor& factor) { return factor.name == name; });
}

bool TakesNumbers(std::string_view factor) {
  const auto kept = CheckLevel(factor, 1);  // each that counts something takes 1
  return kept && kept->is_number();
}

Result<Json> CheckLevel(std::string_view factor, const Json& level) {
  for (const Entry& entry : Entries()) {
    if (entry.factor.name == factor) return entry.check(level);
  }
  return Fail(ErrorCode::kInternal, fmt::format("\"{}\" is no factor", factor));
}

std::string LevelText(std::string_view factor, const Json& level) {
  if (level.is_object()) {
    if (factor == "server") return level.value("name", "server");
    if (factor == "network") return NetworkText(level);
    if (factor == "load") {
      return fmt::format("{:.6g}/s {}", level.value("rate_per_s", 0.0), level.value("distribution", ""));
    }
    std::string text;
    for (const auto& [key, value] : level.items()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key,
                          value.is_string() ? value.get<std::string>() : DumpJson(value));
    }
    return text;
  }
  return level.is_string() ? level.get<std::string>() : DumpJson(level);
}

std::string NamedLevelText(std::string_view factor, const Json& level) {
  const std::string text = LevelText(factor, level);
  if (SpeaksForItself(factor, level)) return text;
  std::string words(factor);
  std::ranges::replace(words, '_', ' ');
  return factor == "page_cache" ? fmt::format("{} {}", text, words) : fmt::format("{} {}", words, text);
}

}  // namespace weir::study
