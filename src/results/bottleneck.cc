#include "results/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "results/thresholds.h"

namespace weir::results {
namespace {

std::optional<double> Rate(double images, double seconds) {
  if (images <= 0 || seconds <= 0) return std::nullopt;
  return images / seconds;
}

double CpuSum(const Costs& c) { return c.load_cpu_s + c.engine_cpu_s + c.other_cpu_s; }

double Least(const Bounds& b) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& bound : {b.read, b.decode, b.infer, b.in_flight, b.server, b.print, b.cpu}) {
    if (bound) least = std::min(least, *bound);
  }
  return least;
}

// Returns the factor by which the rate could rise if one resource doubled and the others stayed.
double Gain(const Costs& before, const Costs& after) {
  const double rate = FindBounds(before).pipeline;
  return rate > 0 ? std::max(1.0, FindBounds(after).pipeline / rate) : 1;
}

std::string Times(double gain) {
  return gain < 1.005 ? "would give nothing more" : fmt::format("would give at most {:.1f} times", gain);
}

// Without overlap every stage adds to the time; the bottleneck is the longest.
Bottleneck LongestStage(const Costs& c) {
  const double read = std::min(c.load_blocked_s, c.load_s);
  const std::array<std::pair<const char*, double>, 4> stages{
      {{c.remote ? "server" : "infer", c.infer_s + c.send_s},
       {"decode", c.load_s - read},
       {"read", read},
       {"print", c.print_s}}};
  double sum = 0;
  for (const auto& [name, seconds] : stages) sum += seconds;
  const auto longest = std::ranges::max_element(stages, {}, [](const auto& s) { return s.second; });
  Bottleneck bottleneck{
      .stage = longest->first, .share = sum > 0 ? longest->second / sum : 0, .share_of = "the time"};
  bottleneck.gain = 1 / (1 - bottleneck.share / 2);
  const double overlap = longest->second > 0 ? sum / longest->second : 1;
  bottleneck.text = fmt::format(
      "{}: {:.0f} % of the time, and nothing overlaps in sync mode; twice as fast it would give at most "
      "{:.1f} times, "
      "--mode async at most {:.1f} times",
      bottleneck.stage == "decode" ? "decoding" : bottleneck.stage, 100 * bottleneck.share, bottleneck.gain,
      overlap);
  return bottleneck;
}

// The part with the most CPU time. Of a server's engine none is ours; sending to it is.
Bottleneck CpuBottleneck(const Costs& c) {
  const double partner = c.remote ? c.other_cpu_s : c.engine_cpu_s;
  const bool decode = c.load_cpu_s > partner;
  Bottleneck bottleneck{.stage = decode     ? "decode"
                                 : c.remote ? "client"
                                            : "infer",
                        .share_of = "the CPU time"};
  bottleneck.share = (decode ? c.load_cpu_s : partner) / CpuSum(c);
  Costs more = c;
  more.cores *= 2;
  (decode ? more.loaders : more.engine_threads) *= 2;
  if (!decode) more.engine_streams *= 2;
  more.in_flight *= 2;
  bottleneck.gain = Gain(c, more);
  const std::string stage = decode ? "decoding" : bottleneck.stage;
  const double foreign = c.foreign_cpu_s / c.wall_s;
  if (foreign > threshold::kForeignNamed * c.cores) {
    bottleneck.text = fmt::format(
        "{}: {:.0f} % of this program's CPU time; other processes{} hold {:.1f} of the {:.3g} cores, alone "
        "it could reach {:.0f} images/s",
        stage, 100 * bottleneck.share, c.remote ? ", the server if it is here," : "", foreign, c.cores,
        FindBounds(c).pipeline);
    return bottleneck;
  }
  bottleneck.text =
      fmt::format("{}: {:.0f} % of the CPU time, and all {:.3g} cores are taken; twice the cores {}", stage,
                  100 * bottleneck.share, c.cores, Times(bottleneck.gain));
  return bottleneck;
}

Bottleneck LoaderBottleneck(const Costs& c, bool read) {
  const double busy = c.load_cpu_s + c.load_blocked_s;
  Bottleneck bottleneck{.stage = read ? "read" : "decode", .share_of = "the loaders' time"};
  bottleneck.share = busy > 0 ? (read ? c.load_blocked_s : c.load_cpu_s) / busy : 0;
  Costs more = c;
  if (read) {
    more.load_blocked_s /= 2;
    bottleneck.gain = Gain(c, more);
    bottleneck.text =
        fmt::format("read: the loaders wait for storage {:.0f} % of their time; storage twice as fast {}",
                    100 * bottleneck.share, Times(bottleneck.gain));
  } else {
    more.loaders *= 2;
    bottleneck.gain = Gain(c, more);
    bottleneck.text =
        fmt::format("decoding: {:.0f} % of the time of its {} thread{}; twice the decode threads {}",
                    100 * bottleneck.share, c.loaders, c.loaders == 1 ? "" : "s", Times(bottleneck.gain));
  }
  return bottleneck;
}

Bottleneck EngineBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "infer", .share_of = "the engine's time"};
  bottleneck.share = std::min(1.0, c.engine_busy_s / (c.engine_streams * c.wall_s));
  Costs more = c;
  more.engine_busy_s /= 2;
  more.engine_cpu_s /= 2;
  more.round_trip_s -= c.engine_busy_s / 2;
  bottleneck.gain = Gain(c, more);
  bottleneck.text = fmt::format("infer: the engine is busy {:.0f} % of the time; one twice as fast {}",
                                100 * bottleneck.share, Times(bottleneck.gain));
  return bottleneck;
}

Bottleneck DepthBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "in_flight", .share_of = "the time"};
  bottleneck.share = std::min(1.0, c.held_back_s / c.wall_s);
  Costs more = c;
  more.in_flight *= 2;
  bottleneck.gain = Gain(c, more);
  bottleneck.text = fmt::format(
      "in_flight: with {} batch{} in flight at most, full batches were held back {:.0f} % of the time while "
      "the "
      "engine had room; twice as many {}",
      c.in_flight, c.in_flight == 1 ? "" : "es", 100 * bottleneck.share, Times(bottleneck.gain));
  return bottleneck;
}

Bottleneck PrintBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "print", .share_of = "the time"};
  bottleneck.share = std::min(1.0, c.print_s / c.wall_s);
  Costs more = c;
  more.print_s /= 2;
  bottleneck.gain = Gain(c, more);
  bottleneck.text =
      fmt::format("print: writing the answers takes {:.0f} % of the time; at half the cost it {}",
                  100 * bottleneck.share, Times(bottleneck.gain));
  return bottleneck;
}

Bottleneck ServerBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "server", .share_of = "the slots in flight"};
  bottleneck.share = std::min(1.0, c.round_trip_s / (c.in_flight * c.wall_s));
  Costs more = c;
  more.round_trip_s /= 2;
  bottleneck.gain = Gain(c, more);
  bottleneck.text = fmt::format(
      "server: of {} batch{} in flight {:.0f} % are with it or on the way; answers in half the time {}, and "
      "more in flight helps where the server has room",
      c.in_flight, c.in_flight == 1 ? "" : "es", 100 * bottleneck.share, Times(bottleneck.gain));
  const double foreign = c.foreign_cpu_s / c.wall_s;
  if (foreign > threshold::kForeignNamed * c.cores) {
    bottleneck.text += fmt::format(
        "; other processes of this machine, the server if it is here, hold {:.1f} of its "
        "{:.3g} cores",
        foreign, c.cores);
  }
  return bottleneck;
}

// Bounds the rate of an engine of this process: on its threads or streams alone, and, by Little's law, at the
// depth of this run. What a batch takes alone: for an accelerator as seen; for a CPU engine, whose times
// stretch when others take its cores, from its CPU time.
void BoundEngine(const Costs& c, Bounds& b) {
  if (c.engine_threads > 0) {
    b.infer = Rate(c.images, c.engine_cpu_s / std::min<double>(c.engine_threads, c.cores));
    if (b.infer) b.in_flight = *b.infer * c.in_flight / c.engine_streams;
  } else {
    b.infer = Rate(c.images, c.engine_busy_s / c.engine_streams);
    b.in_flight = Rate(c.images, c.round_trip_s / c.in_flight);
  }
}

}  // namespace

Bounds FindBounds(const Costs& c) {
  Bounds b;
  if (c.loaders > 0) {
    b.read = Rate(c.images, c.load_blocked_s / c.loaders);
    b.decode =
        Rate(c.images, std::max((c.load_cpu_s + c.load_blocked_s) / c.loaders, c.load_cpu_s / c.cores));
  }
  if (c.remote) {
    b.server = Rate(c.images, c.round_trip_s / c.in_flight);
  } else {
    BoundEngine(c, b);
  }
  b.print = Rate(c.images, c.print_s);
  b.cpu = Rate(c.images, CpuSum(c) / c.cores);
  if (c.overlapped) {
    b.pipeline = Least(b);
  } else {
    b.pipeline = Rate(c.images, c.load_s + c.send_s + c.infer_s + c.print_s).value_or(0);
  }
  return b;
}

std::optional<Bottleneck> FindBottleneck(const Costs& c) {
  if (c.images <= 0 || c.wall_s <= 0) return std::nullopt;
  if (!c.overlapped) return LongestStage(c);
  const Bounds b = FindBounds(c);
  const double infinite = std::numeric_limits<double>::infinity();
  const double cpu = b.cpu.value_or(infinite), decode = b.decode.value_or(infinite),
               infer = b.infer.value_or(infinite);
  const double print = b.print.value_or(infinite), server = b.server.value_or(infinite);
  if (c.remote && c.held_back_s > threshold::kHeldBack * c.wall_s) return ServerBottleneck(c);
  const double bound = std::min({cpu, decode, infer, print, server});
  // Seen, not computed: work was ready, the engine had room (a CPU engine has none where the cores are
  // taken), and only the depth kept them apart.
  const double engine_share = c.engine_busy_s / (c.engine_streams * c.wall_s);
  const double cpu_share = (CpuSum(c) + c.foreign_cpu_s) / (c.cores * c.wall_s);
  if (!c.remote && c.held_back_s > threshold::kHeldBack * c.wall_s && engine_share < threshold::kTaken &&
      (c.engine_threads == 0 || cpu_share < threshold::kTaken)) {
    if (Bottleneck depth = DepthBottleneck(c); depth.gain > threshold::kWorthGain) return depth;
  }
  // Cores first: where they are all taken, more threads of one kind only take them from the other.
  if (cpu <= bound * threshold::kSameRate && c.load_blocked_s < c.load_cpu_s) return CpuBottleneck(c);
  if (decode <= bound) return LoaderBottleneck(c, c.load_blocked_s > c.load_cpu_s);
  if (infer <= bound) return EngineBottleneck(c);
  if (print <= bound) return PrintBottleneck(c);
  if (server <= bound) return ServerBottleneck(c);
  return CpuBottleneck(c);
}

Bottleneck FindBottleneck(const Busy& busy) {
  const double most = std::max(busy.link, busy.recogniser);
  const bool is_link = busy.link > busy.recogniser;
  if (most >= threshold::kBusy) return {.stage = is_link ? "network" : "infer", .share = most};
  // More in flight would wait for the same cores, or the same link.
  if (busy.cores >= threshold::kTaken) return {.stage = "cpu", .share = busy.cores};
  if (busy.overlapped && busy.link >= threshold::kLinkFull && is_link)
    return {.stage = "network", .share = busy.link};
  return {.stage = "in_flight", .share = 1 - most};
}

std::optional<Bottleneck> FindBottleneck(std::span<const StageTime> stages, double wall_s) {
  if (wall_s <= 0) return std::nullopt;
  std::optional<Bottleneck> most;
  for (const StageTime& stage : stages) {
    if (stage.threads <= 0) continue;
    const double share = stage.seconds / (wall_s * stage.threads);
    if (share > (most ? most->share : 0)) most = Bottleneck{.stage = stage.name, .share = share};
  }
  return most;
}

}  // namespace weir::results
