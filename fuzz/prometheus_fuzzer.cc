// Any bytes as a server's metrics page: read or refused, and what was read comes back from a text made of it.
#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "monitor/prometheus.h"
#include "monitor/server_metrics.h"

using namespace weir;  // NOLINT: a program of one file

namespace {

std::string Escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string Format(const monitor::Metric& metric) {
  std::string text = metric.name + "{";
  for (const auto& [name, value] : metric.labels) text += name + "=\"" + Escaped(value) + "\",";
  text += fmt::format("}} {}", metric.value);
  if (metric.timestamp_ms) text += fmt::format(" {}", *metric.timestamp_ms);
  return text + "\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto metrics = monitor::ParsePrometheus(text);
  if (!metrics) {
    CHECK(metrics.error().code == ErrorCode::kCorrupt && !metrics.error().message.empty());
    return 0;
  }
  std::string again;
  for (const monitor::Metric& metric : *metrics) again += Format(metric);
  const auto twice = monitor::ParsePrometheus(again, {.bytes = SIZE_MAX});
  CHECK(twice && twice->size() == metrics->size());
  for (size_t i = 0; i < metrics->size(); ++i) {
    const monitor::Metric &one = (*metrics)[i], &other = (*twice)[i];
    CHECK(one.name == other.name && one.labels == other.labels && one.timestamp_ms == other.timestamp_ms);
    CHECK(one.value == other.value || (std::isnan(one.value) && std::isnan(other.value)));
  }
  const auto picked = monitor::ReadServerMetrics(text);
  CHECK(picked || picked.error().code == ErrorCode::kNotFound);
  if (picked && picked->gpu_share) CHECK(*picked->gpu_share >= 0);
  return 0;
}
