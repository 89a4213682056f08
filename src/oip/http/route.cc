#include "oip/http/route.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace weir::oip {
namespace {

constexpr size_t kMostSegments = 7;

// The segments of a path; empty ones end it. Those that begin with a colon take any name.
using Segments = std::array<std::string_view, kMostSegments>;

struct Entry {
  HttpAction action;
  std::string_view verb;
  Segments pattern;
};

// The first that fits is taken: "stats" is no model.
using enum HttpAction;
constexpr Entry kEntries[] = {
    {kServerMetadata, "GET", {"v2"}},
    {kServerLive, "GET", {"v2", "health", "live"}},
    {kServerReady, "GET", {"v2", "health", "ready"}},
    {kStatistics, "GET", {"v2", "models", "stats"}},
    {kInfer, "POST", {"v2", "models", ":model", "infer"}},
    {kModelMetadata, "GET", {"v2", "models", ":model"}},
    {kModelReady, "GET", {"v2", "models", ":model", "ready"}},
    {kModelConfig, "GET", {"v2", "models", ":model", "config"}},
    {kStatistics, "GET", {"v2", "models", ":model", "stats"}},
    {kInfer, "POST", {"v2", "models", ":model", "versions", ":version", "infer"}},
    {kModelMetadata, "GET", {"v2", "models", ":model", "versions", ":version"}},
    {kModelReady, "GET", {"v2", "models", ":model", "versions", ":version", "ready"}},
    {kModelConfig, "GET", {"v2", "models", ":model", "versions", ":version", "config"}},
    {kStatistics, "GET", {"v2", "models", ":model", "versions", ":version", "stats"}},
    {kIndex, "POST", {"v2", "repository", "index"}},
    {kLoad, "POST", {"v2", "repository", "models", ":model", "load"}},
    {kUnload, "POST", {"v2", "repository", "models", ":model", "unload"}},
    {kIndex, "POST", {"v2", "repository", ":repository", "index"}},
    {kLoad, "POST", {"v2", "repository", ":repository", "models", ":model", "load"}},
    {kUnload, "POST", {"v2", "repository", ":repository", "models", ":model", "unload"}},
    {kRegionStatus, "GET", {"v2", "systemsharedmemory", "status"}},
    {kRegionUnregister, "POST", {"v2", "systemsharedmemory", "unregister"}},
    {kRegionStatus, "GET", {"v2", "systemsharedmemory", "region", ":region", "status"}},
    {kRegionRegister, "POST", {"v2", "systemsharedmemory", "region", ":region", "register"}},
    {kRegionUnregister, "POST", {"v2", "systemsharedmemory", "region", ":region", "unregister"}},
    {kCudaRegionStatus, "GET", {"v2", "cudasharedmemory", "status"}},
    {kCudaRegionUnregister, "POST", {"v2", "cudasharedmemory", "unregister"}},
    {kCudaRegionStatus, "GET", {"v2", "cudasharedmemory", "region", ":region", "status"}},
    {kCudaRegionRegister, "POST", {"v2", "cudasharedmemory", "region", ":region", "register"}},
    {kCudaRegionUnregister, "POST", {"v2", "cudasharedmemory", "region", ":region", "unregister"}},
};

// Returns nullopt for a segment that holds characters no name has.
std::optional<std::string> Decode(std::string_view segment) {
  std::optional<std::string> text = DecodePercent(segment);
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return text && std::ranges::none_of(*text, is_control) ? text : std::nullopt;
}

// Nothing where a segment is empty, or there are more than any route has.
std::optional<Segments> Split(std::string_view path) {
  Segments segments;
  if (path.ends_with('/')) path.remove_suffix(1);
  for (std::string_view& segment : segments) {
    if (path.empty()) return segments;
    if (path[0] != '/') return std::nullopt;
    path.remove_prefix(1);
    segment = path.substr(0, path.find('/'));
    if (segment.empty()) return std::nullopt;
    path.remove_prefix(segment.size());
  }
  if (!path.empty()) return std::nullopt;
  return segments;
}

bool Fits(const Segments& pattern, const Segments& segments) {
  return std::ranges::equal(pattern, segments, [](std::string_view wanted, std::string_view given) {
    return wanted.starts_with(':') ? !given.empty() : wanted == given;
  });
}

std::optional<HttpRoute> Fill(const Entry& entry, const Segments& segments) {
  HttpRoute route{.action = entry.action};
  for (size_t i = 0; i < segments.size(); ++i) {
    const std::string_view name = entry.pattern[i];
    if (!name.starts_with(':')) continue;
    std::optional<std::string> value = Decode(segments[i]);
    if (!value) return std::nullopt;
    std::string& field = name == ":model"     ? route.model
                         : name == ":version" ? route.version
                         : name == ":region"  ? route.region
                                              : route.repository;
    field = *std::move(value);
  }
  return route;
}

}  // namespace

std::variant<HttpRoute, NoHttpRoute> FindHttpRoute(std::string_view method, std::string_view path) {
  const auto segments = Split(path);
  for (const Entry& entry : kEntries) {
    if (!segments || !Fits(entry.pattern, *segments)) continue;
    const bool is_get = entry.verb == "GET";
    if (method != entry.verb && !(is_get && method == "HEAD")) {
      return NoHttpRoute{405, is_get ? "GET, HEAD" : std::string(entry.verb),
                         fmt::format("{} is asked for with {}", Quoted(path), entry.verb)};
    }
    if (auto route = Fill(entry, *segments)) return *std::move(route);
    return NoHttpRoute{400, "", fmt::format("the path {} has characters no name has", Quoted(path))};
  }
  return NoHttpRoute{404, "", fmt::format("there is no route {}", Quoted(path))};
}

}  // namespace weir::oip
