#include "results/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "results/thresholds.h"

namespace weir::results {
namespace {

constexpr const char* kTellsNothing =
    "The server tells no times of its own, so what more speed would give is unknown";

std::string Words(const std::string& stage) { return stage == "decode" ? "decoding" : stage; }

// Returns the factor by which the measured rate could rise at most if one resource doubled and the others
// stayed: no one of them more than doubles it.
double Gain(const Costs& before, const Costs& after) {
  return std::clamp(FindBounds(after).pipeline * before.wall_s / before.images, 1.0, 2.0);
}

double CoresTaken(const Costs& c) {
  return std::min(1.0, (CpuSum(c) + c.foreign_cpu_s) / (c.cores * c.wall_s));
}

std::string Times(double gain) {
  return gain < 1.005 ? "would give nothing more" : fmt::format("would give at most {:.1f} times", gain);
}

// Without overlap every stage adds to the time. Of a round trip to a server the parts that are known stand
// apart.
std::vector<StageTime> StagesInTurn(const Costs& c) {
  const double read = std::min(c.load_blocked_s, c.load_s), round_trip = c.infer_s + c.send_s;
  std::vector<StageTime> stages{{"decode", c.load_s - read}, {"read", read}, {"print", c.print_s}};
  if (!c.remote) {
    stages.push_back({"infer", round_trip});
  } else if (!c.server) {
    stages.push_back({"server", round_trip});
  } else {
    const double own = std::min(round_trip, c.server->own_s + c.server->queue_s), outside = round_trip - own;
    const double link = c.link_s ? std::min(outside, *c.link_s + c.link_delay_s) : outside;
    stages.insert(stages.end(), {{"server", own}, {"network", link}, {"client", outside - link}});
  }
  return stages;
}

// The rest of the time stays as it is, so the rate without a stage follows of the whole time.
Bottleneck LongestStage(const Costs& c) {
  std::vector<StageTime> stages = StagesInTurn(c);
  std::ranges::sort(stages, std::greater(), &StageTime::seconds);
  double sum = 0;
  for (const StageTime& stage : stages) sum += stage.seconds;
  const StageTime& longest = stages[0];
  Bottleneck bottleneck{
      .stage = longest.name, .share = sum > 0 ? longest.seconds / sum : 0, .share_of = "the time"};
  const std::string name = Words(bottleneck.stage);
  if (bottleneck.stage == "server" && !c.server) {
    bottleneck.text = fmt::format("{}: {:.0f} % of the time is with it or on the way. {}", name,
                                  100 * bottleneck.share, kTellsNothing);
    return bottleneck;
  }
  bottleneck.gain = 1 / (1 - bottleneck.share / 2);
  if (c.wall_s > longest.seconds) {
    bottleneck.next = stages[1].name;
    bottleneck.next_images_per_s = c.images / (c.wall_s - longest.seconds);
  }
  const double overlap = longest.seconds > 0 ? sum / longest.seconds : 1;
  bottleneck.text = fmt::format(
      "{}: {:.0f} % of the time, and nothing overlaps in sync mode; twice as fast it would give at most "
      "{:.1f} "
      "times, --mode async at most {:.1f} times",
      name, 100 * bottleneck.share, bottleneck.gain, overlap);
  return bottleneck;
}

// All cores are taken, by whomever.
Bottleneck CoresBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "cpu", .share = CoresTaken(c), .share_of = "the cores"};
  bottleneck.gain = Gain(c, Relieve(c, "cpu", 2));
  bottleneck.text = fmt::format("cpu: {:.0f} % of the {:.3g} cores are taken; twice as many {}",
                                100 * bottleneck.share, c.cores, Times(bottleneck.gain));
  return bottleneck;
}

// The part with the most CPU time. Of a server's engine none is ours, unless it is here and watched; sending
// to it is.
Bottleneck CpuBottleneck(const Costs& c) {
  const double partner = c.remote ? c.other_cpu_s : c.engine_cpu_s;
  if (c.server_cpu_s > std::max(partner, c.load_cpu_s)) return CoresBottleneck(c);
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
  if (read) {
    bottleneck.gain = Gain(c, Relieve(c, "read", 2));
    bottleneck.text =
        fmt::format("read: the loaders wait for storage {:.0f} % of their time; storage twice as fast {}",
                    100 * bottleneck.share, Times(bottleneck.gain));
  } else {
    Costs more = c;
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
  bottleneck.gain = Gain(c, Relieve(c, "infer", 2));
  bottleneck.text = fmt::format("infer: the engine is busy {:.0f} % of the time; one twice as fast {}",
                                100 * bottleneck.share, Times(bottleneck.gain));
  return bottleneck;
}

Bottleneck DepthBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "in_flight", .share_of = "the time"};
  bottleneck.share = std::min(1.0, c.held_back_s / c.wall_s);
  bottleneck.gain = Gain(c, Relieve(c, "in_flight", 2));
  bottleneck.text = fmt::format(
      "in_flight: with {} batch{} in flight at most, full batches were held back {:.0f} % of the time while "
      "the {} had room; twice as many {}",
      c.in_flight, c.in_flight == 1 ? "" : "es", 100 * bottleneck.share, c.remote ? "server" : "engine",
      Times(bottleneck.gain));
  return bottleneck;
}

Bottleneck PrintBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "print", .share_of = "the time"};
  bottleneck.share = std::min(1.0, c.print_s / c.wall_s);
  bottleneck.gain = Gain(c, Relieve(c, "print", 2));
  bottleneck.text =
      fmt::format("print: writing the answers takes {:.0f} % of the time; at half the cost it {}",
                  100 * bottleneck.share, Times(bottleneck.gain));
  return bottleneck;
}

// Appended where a server may be among the other processes of this machine.
std::string OthersText(const Costs& c) {
  const double foreign = c.foreign_cpu_s / c.wall_s;
  if (foreign <= threshold::kForeignNamed * c.cores) return "";
  return fmt::format(
      "; other processes of this machine, the server if it is here, hold {:.1f} of its {:.3g} cores", foreign,
      c.cores);
}

// `share`: of its time, where that is known.
Bottleneck ServerBottleneck(const Costs& c, std::optional<double> share) {
  Bottleneck bottleneck{.stage = "server", .share_of = share ? "its time" : "the round trips"};
  if (!c.server) {
    bottleneck.share_of = "the slots in flight";
    bottleneck.share = std::min(1.0, c.round_trip_s / (std::max(1, c.in_flight) * c.wall_s));
    bottleneck.text =
        fmt::format("server: of {} batch{} in flight {:.0f} % are with it or on the way. {}", c.in_flight,
                    c.in_flight == 1 ? "" : "es", 100 * bottleneck.share, kTellsNothing) +
        OthersText(c);
    return bottleneck;
  }
  const double own = c.server->own_s + c.server->queue_s;
  bottleneck.share = share ? *share : c.round_trip_s > 0 ? std::min(1.0, own / c.round_trip_s) : 0;
  bottleneck.gain = Gain(c, Relieve(c, "server", 2));
  bottleneck.text =
      share ? fmt::format("server: it computes {:.0f} % of the time, by its own account", 100 * *share)
            : fmt::format("server: {:.0f} % of a round trip is there, by its own account",
                          100 * bottleneck.share);
  bottleneck.text += fmt::format("; twice as fast it {}", Times(bottleneck.gain)) + OthersText(c);
  return bottleneck;
}

Bottleneck NetworkBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "network"};
  bottleneck.gain = Gain(c, Relieve(c, "network", 2));
  if (c.link_s) {
    bottleneck.share = std::min(1.0, *c.link_s / c.wall_s);
    bottleneck.text = fmt::format("network: the link is full {:.0f} % of the time; one twice as fast {}",
                                  100 * bottleneck.share, Times(bottleneck.gain));
    return bottleneck;
  }
  const double outside = c.round_trip_s - c.server->own_s - c.server->queue_s;
  bottleneck.share = c.round_trip_s > 0 ? outside / c.round_trip_s : 0;
  bottleneck.share_of = "the round trips";
  bottleneck.text = fmt::format(
      "network: {:.0f} % of a round trip is the way to the server and back, both protocol stacks included; a "
      "way twice as fast {}",
      100 * bottleneck.share, Times(bottleneck.gain));
  return bottleneck;
}

Bottleneck RateBottleneck(const Costs& c) {
  Bottleneck bottleneck{.stage = "rate", .share = std::min(1.0, *c.rate_limit_s / c.wall_s)};
  bottleneck.gain = Gain(c, Relieve(c, "rate", 2));
  bottleneck.text =
      fmt::format("rate: all that was asked for was answered; twice as much {}", Times(bottleneck.gain));
  return bottleneck;
}

// Tells what holds back batches on their way to a server and back: the link or the server, where one of them
// was busy for most of the time; the cores, where none was left, as more in flight would wait for the same
// ones; the link also where several connections did not quite fill it; else the longer part of a round trip,
// or the depth.
Bottleneck RoundTripBottleneck(const Costs& c) {
  const double link = c.link_s.value_or(0) / c.wall_s;
  const double server = c.server ? c.server->alone_s.value_or(0) / c.wall_s : 0;
  if (std::max(link, server) >= threshold::kBusy)
    return link > server ? NetworkBottleneck(c) : ServerBottleneck(c, std::min(1.0, server));
  if (CoresTaken(c) >= threshold::kTaken && (c.server_cpu_s > 0 || c.link_s)) return CoresBottleneck(c);
  if (c.in_flight != 1 && link >= threshold::kLinkFull && link > server) return NetworkBottleneck(c);
  if (c.rate_limit_s) return RateBottleneck(c);
  if (c.link_s) return DepthBottleneck(c);
  if (!c.server) return ServerBottleneck(c, std::nullopt);
  const double own = c.server->own_s + c.server->queue_s;
  if (c.round_trip_s - own > own) return NetworkBottleneck(c);
  return c.server->alone_s ? DepthBottleneck(c) : ServerBottleneck(c, std::nullopt);
}

// Names what holds back after the bottleneck. Not known where a server's own rate is not, but for its own
// relief; an unknown link hides behind the round trips as they are, which more load does not shorten.
void AddNext(const Costs& c, Bottleneck& bottleneck) {
  const bool unknown = c.remote && (!c.server || (!c.server->alone_s && bottleneck.stage != "server"));
  if (unknown || bottleneck.gain == 0) return;
  const Limit limit = FindLimit(Relieve(c, bottleneck.stage, std::numeric_limits<double>::infinity()));
  if (!(limit.seconds > 0)) return;
  bottleneck.next = limit.stage;
  bottleneck.next_images_per_s = c.images / limit.seconds;
}

Bottleneck LongestOverlapped(const Costs& c) {
  const Bounds b = FindBounds(c);
  const double infinite = std::numeric_limits<double>::infinity();
  const double cpu = b.cpu.value_or(infinite), loaders = b.loaders.value_or(infinite);
  const double infer = b.infer.value_or(infinite), print = b.print.value_or(infinite);
  if (c.remote && (c.held_back_s > threshold::kHeldBack * c.wall_s || c.rate_limit_s))
    return RoundTripBottleneck(c);
  const double bound = std::min({cpu, loaders, infer, print});
  // Seen, not computed: work was ready, the engine had room (a CPU engine has none where the cores are
  // taken), and only the depth kept them apart.
  const double engine_share = c.engine_busy_s / (c.engine_streams * c.wall_s);
  if (!c.remote && c.held_back_s > threshold::kHeldBack * c.wall_s && engine_share < threshold::kTaken &&
      (c.engine_threads == 0 || CoresTaken(c) < threshold::kTaken)) {
    if (Bottleneck depth = DepthBottleneck(c); depth.gain > threshold::kWorthGain) return depth;
  }
  // Cores first: where they are all taken, more threads of one kind only take them from the other.
  if (cpu <= bound * threshold::kSameRate && c.load_blocked_s < c.load_cpu_s) return CpuBottleneck(c);
  if (loaders <= bound) return LoaderBottleneck(c, c.load_blocked_s > c.load_cpu_s);
  if (infer <= bound) return EngineBottleneck(c);
  if (print <= bound) return PrintBottleneck(c);
  return CpuBottleneck(c);
}

}  // namespace

std::optional<Bottleneck> FindBottleneck(const Costs& c) {
  if (c.images <= 0 || c.wall_s <= 0) return std::nullopt;
  if (!c.overlapped) return LongestStage(c);
  Bottleneck bottleneck = LongestOverlapped(c);
  AddNext(c, bottleneck);
  return bottleneck;
}

std::string Contradiction(const Bounds& bounds, const std::string& stage, double images_per_s) {
  const double named = BoundOf(bounds, stage).value_or(images_per_s);
  std::string text;
  for (const char* part : {"read", "decode", "infer", "server", "network", "print"}) {
    const auto bound = BoundOf(bounds, part);
    if (part == stage || !bound || *bound * threshold::kSameRate >= named) continue;
    text += fmt::format("{}{} at {:.4g} images/s", text.empty() ? "" : ", ", part, *bound);
  }
  return text.empty() ? ""
                      : fmt::format("{} is named, which holds back at {:.4g}, but {}", stage, named, text);
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
