#include "probe/finding.h"

#include <array>
#include <cstddef>

namespace weir::probe {
namespace {

constexpr std::array<std::string_view, 25> kKinds = {
    "engine",  "cpu-model", "instruction-sets", "cpu-count",  "smt",       "cpu-governor",   "cpu-turbo",
    "cgroup",  "numa",      "memory",           "swap",       "page-size", "huge-pages",     "limits",
    "clock",   "timer",     "foreign-cpu",      "steal",      "pressure",  "virtualisation", "gpu",
    "network", "disk",      "container-tools",  "perf-events"};
static_assert(kKinds.size() == static_cast<size_t>(FindingKind::kPerfEvents) + 1);

constexpr std::array<std::string_view, 3> kSeverities = {"ok", "note", "warning"};

}  // namespace

std::string_view ToString(FindingKind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view ToString(Severity severity) { return kSeverities[static_cast<size_t>(severity)]; }

}  // namespace weir::probe
