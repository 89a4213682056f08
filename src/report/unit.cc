#include "report/unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "results/study_result.h"

namespace weir::report {
namespace {

// Endings of a metric's name, each with its unit. The first that fits: longer ones first.
constexpr struct {
  std::string_view ending, unit;
  double scale;
} kEndings[] = {{"images_per_s", "images/s", 1},
                {"rows_per_s", "rows/s", 1},
                {"gbit_per_s", "Gbit/s", 1},
                {"switches_per_s", "1/s", 1},
                {"throughput_per_s", "requests/s", 1},
                {"cpu_ms_per_image", "ms of CPU time an image", 1},
                {"cpu_us_per_request", "µs of CPU time a request", 1},
                {"us_per_sample", "µs a sample", 1},
                {"bytes", "MB", 1e-6},
                {"_percent", "%", 1},
                {"_watts", "W", 1},
                {"_mhz", "MHz", 1},
                {"_ms", "ms", 1},
                {"_us", "µs", 1},
                {"_j", "J", 1},
                {"_s", "s", 1},
                {"_cpu", "cores", 1}};

constexpr std::pair<std::string_view, std::string_view> kBottlenecks[] = {
    {"read", "storage: the loaders wait for it"},
    {"decode", "reading and preparing the pictures, on the application's CPU"},
    {"infer", "the engine"},
    {"network", "the link to the server"},
    {"in_flight", "the depth: more batches in flight would find the others idle"},
    {"cpu", "the cores of the application's machine, all taken by it, its server or others"},
    {"print", "writing the answers"},
    {"client", "the CPU time of the sending"},
    {"server", "the server, or the way to it"},
    {"rate", "the rate that was asked for"}};

constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"throughput_images_per_s", "throughput"},
    {"throughput_per_s", "throughput"},
    {"rows_per_s", "throughput"},
    {"response_ms", "response time"},
    {"response_ms.mean", "mean response time"},
    {"response_ms.p50", "median response time"},
    {"response_ms.p90", "p90 of the response time"},
    {"response_ms.p95", "p95 of the response time"},
    {"response_ms.p99", "p99 of the response time"},
    {"response_ms.p99_9", "p99.9 of the response time"},
    {"response_ms.max", "longest response time"},
    {"service_ms.mean", "mean service time"},
    {"service_ms.p99", "p99 of the service time"},
    {results::ChartData::kRequestsPercent, "requests that took no longer"},
    {"server_start_s", "start of the server"},
    {"wall_s", "time of a trial"},
    {"accuracy.top1", "top-1 accuracy"},
    {"accuracy.top5", "top-5 accuracy"},
    {"price_per_million_images", "price of a million pictures"},
    {"resources.host_memory_bytes.mean", "memory of the host, mean"},
    {"resources.host_memory_bytes.max", "memory of the host, greatest"},
    {"memory_bytes.mean", "memory of client and server, mean"},
    {"memory_bytes.max", "memory of client and server, greatest"},
    {"resources.container_memory_bytes.mean", "memory of the server, mean"},
    {"resources.container_memory_bytes.max", "memory of the server, greatest"},
    {"resources.process_memory_bytes.mean", "memory of the processes, mean"},
    {"resources.process_memory_bytes.max", "memory of the processes, greatest"},
    {"resources.app_cpu.mean", "CPU of the application"},
    {"resources.recogniser_cpu.mean", "CPU of the engine"},
    {"resources.server_cpu.mean", "CPU of the server's machine"},
    {"resources.client_cpu.mean", "CPU of the client's machine"}};

}  // namespace

Unit UnitOf(std::string_view metric) {
  while (!metric.empty()) {
    const size_t dot = metric.find('.');
    const std::string_view part = metric.substr(0, dot);
    const auto found =
        std::ranges::find_if(kEndings, [part](const auto& one) { return part.ends_with(one.ending); });
    if (found != std::end(kEndings)) return {.name = std::string(found->unit), .scale = found->scale};
    metric = dot == std::string_view::npos ? std::string_view() : metric.substr(dot + 1);
  }
  return {};
}

std::string MetricWords(std::string_view metric) {
  for (const auto& [name, words] : kWords) {
    if (name == metric) return std::string(words);
  }
  std::string words(metric);
  std::ranges::replace_if(words, [](char c) { return c == '_' || c == '.'; }, ' ');
  return words;
}

std::string WithUnit(const std::string& label, const std::string& unit) {
  return unit.empty() ? label : fmt::format("{} ({})", label, unit);
}

std::string_view BottleneckMeaning(std::string_view bottleneck) {
  for (const auto& [word, meaning] : kBottlenecks) {
    if (word == bottleneck) return meaning;
  }
  return "";
}

}  // namespace weir::report
