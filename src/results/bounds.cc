#include "results/bounds.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "results/thresholds.h"

namespace weir::results {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::optional<double> Rate(double images, double seconds) {
  if (images <= 0 || !(seconds > 0)) return std::nullopt;
  return images / seconds;
}

double DecodeSeconds(const Costs& c) {
  return c.loaders > 0 ? std::max(c.load_cpu_s / c.loaders, c.load_cpu_s / c.cores) : 0;
}

double LoaderSeconds(const Costs& c) {
  if (c.loaders <= 0) return 0;
  return std::max((c.load_cpu_s + c.load_blocked_s) / c.loaders, c.load_cpu_s / c.cores);
}

// Tells what a batch takes alone: for an accelerator as seen; for a CPU engine, whose times stretch when
// others take its cores, from its CPU time.
double EngineSeconds(const Costs& c) {
  if (c.remote) return 0;
  if (c.engine_threads > 0) return c.engine_cpu_s / std::min<double>(c.engine_threads, c.cores);
  return c.engine_busy_s / c.engine_streams;
}

// For the depth of an engine of this process, by Little's law.
double DepthSeconds(const Costs& c) {
  if (c.in_flight <= 0) return 0;
  if (c.remote) return c.round_trip_s / c.in_flight;
  if (c.engine_threads > 0) return EngineSeconds(c) * c.engine_streams / c.in_flight;
  return c.round_trip_s / c.in_flight;
}

bool MayJoinMore(const ServerAccount& a) {
  return a.most_rows > std::max(a.rows_per_batch, a.rows_per_request) * threshold::kSameRate;
}

std::optional<double> AloneSeconds(const ServerAccount& a) {
  if (!a.instances || *a.instances < 1 || !a.threads || MayJoinMore(a)) return std::nullopt;
  if (*a.threads > 0) {
    if (!a.cpu_s || !(*a.cpu_s > 0)) return std::nullopt;
    return *a.cpu_s / (a.cores > 0 ? std::min<double>(*a.threads, a.cores) : *a.threads);
  }
  // Each request of a batch is told the batch's whole time.
  const double joined = a.rows_per_batch > 0 ? std::max(1.0, a.rows_per_batch / a.rows_per_request) : 1;
  const double busy = a.infer_s / joined / *a.instances;
  return busy > 0 ? std::optional(busy) : std::nullopt;
}

void RelieveRoundTrip(const std::string& stage, double factor, Costs& c) {
  const double own = c.server ? c.server->own_s + c.server->queue_s : 0;
  const double outside = std::max(0.0, c.round_trip_s - own);
  if (stage == "server") {
    // More speed also ends the wait for it.
    c.round_trip_s = c.server ? outside + c.server->own_s / factor : c.round_trip_s / factor;
    if (!c.server) return;
    c.server->own_s /= factor;
    c.server->queue_s = 0;
    if (c.server->alone_s) *c.server->alone_s /= factor;
    c.server_cpu_s /= factor;
    return;
  }
  // For several on their way, each waits for the link that another has: how long is not known for a faster
  // one, so the link's own time is all that is left of it. One alone waits for its own bytes.
  const bool waits = c.link_s && c.in_flight != 1;
  const double way = c.link_s ? std::min(outside, *c.link_s + c.link_delay_s) : outside;
  c.round_trip_s -= waits ? outside : way - way / factor;
  if (c.link_s) *c.link_s /= factor;
  c.link_delay_s /= factor;
}

}  // namespace

ServerCosts CostsOf(const ServerAccount& account) {
  return {.own_s = account.input_s + account.infer_s + account.output_s,
          .queue_s = account.queue_s,
          .alone_s = AloneSeconds(account)};
}

double CpuSum(const Costs& c) { return c.load_cpu_s + c.engine_cpu_s + c.other_cpu_s + c.server_cpu_s; }

Bounds FindBounds(const Costs& c) {
  Bounds b;
  if (c.loaders > 0) {
    b.read = Rate(c.images, c.load_blocked_s / c.loaders);
    b.decode = Rate(c.images, DecodeSeconds(c));
    b.loaders = Rate(c.images, LoaderSeconds(c));
  }
  if (c.remote) {
    if (c.server && c.server->alone_s) b.server = Rate(c.images, *c.server->alone_s);
    if (c.link_s) b.network = Rate(c.images, *c.link_s);
  } else {
    b.infer = Rate(c.images, EngineSeconds(c));
    b.in_flight = Rate(c.images, DepthSeconds(c));
  }
  b.print = Rate(c.images, c.print_s);
  b.cpu = Rate(c.images, CpuSum(c) / c.cores);
  const double seconds = c.overlapped ? FindLimit(c).seconds : c.load_s + c.send_s + c.infer_s + c.print_s;
  b.pipeline = Rate(c.images, seconds).value_or(0);
  return b;
}

std::optional<double> BoundOf(const Bounds& b, const std::string& stage) {
  const auto least = [](const std::optional<double>& own, const std::optional<double>& shared) {
    return own && shared ? std::min(own, shared) : own;
  };
  if (stage == "read") return least(b.read, b.loaders);
  if (stage == "decode") return least(least(b.decode, b.loaders), b.cpu);
  if (stage == "infer") return least(b.infer, b.cpu);
  if (stage == "in_flight") return b.in_flight;
  if (stage == "server") return b.server;
  if (stage == "network") return b.network;
  if (stage == "print") return least(b.print, b.cpu);
  return stage == "cpu" || stage == "client" ? b.cpu : std::nullopt;
}

Limit FindLimit(const Costs& c) {
  const Limit limits[] = {
      {c.load_blocked_s > c.load_cpu_s ? "read" : "decode", LoaderSeconds(c)},
      {"infer", EngineSeconds(c)},
      {"server", c.server ? c.server->alone_s.value_or(0) : 0},
      {"network", c.link_s.value_or(0)},
      {"in_flight", DepthSeconds(c)},
      {"rate", c.rate_limit_s.value_or(0)},
      {"print", c.print_s},
      {"cpu", CpuSum(c) / c.cores},
  };
  return *std::ranges::max_element(limits, {}, &Limit::seconds);
}

Costs Relieve(Costs c, const std::string& stage, double factor) {
  if (stage == "read") c.load_blocked_s /= factor;
  if (stage == "decode") c.load_cpu_s /= factor;
  if (stage == "print") c.print_s /= factor;
  if (stage == "client") c.other_cpu_s /= factor;
  if (stage == "cpu") c.cores *= factor;
  if (stage == "rate" && c.rate_limit_s) *c.rate_limit_s /= factor;
  if (stage == "in_flight") c.in_flight = factor == kInfinite ? 0 : static_cast<int>(c.in_flight * factor);
  if (stage == "infer") {
    c.round_trip_s = std::max(0.0, c.round_trip_s - (c.engine_busy_s - c.engine_busy_s / factor));
    c.engine_busy_s /= factor;
    c.engine_cpu_s /= factor;
  }
  if (stage == "server" || stage == "network") RelieveRoundTrip(stage, factor, c);
  return c;
}

}  // namespace weir::results
