#include "predict/testing/made_set.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/seed.h"

namespace weir::predict {
namespace {

constexpr std::string_view kSpec = R"(
predict: made
rows: made.csv
id: row_id
hardware: {file: hardware.csv, key: gpu}
networks: {file: networks.csv, key: network}
target: {column: items_per_s, kind: rate, per: gpu_count}
devices: gpu_count
batch: batch
of: item
derive: {work: 3 * gflops}
terms: {compute: work / tflops, memory: moved / bandwidth, step: 1 / batch}
physics_by: [network]
ranges: [batch]
peaks: [tflops, work]
numbers:
  hardware: [tflops, bandwidth]
  network: [gflops, moved]
  run: [batch, gpu_count]
categories:
  network: [network]
  run: [precision]
)";

struct Gpu {
  const char* name;
  double tflops, bandwidth;
};
constexpr Gpu kGpus[] = {{"gpu-a", 10, 300}, {"gpu-b", 20, 400}, {"gpu-c", 30, 900},    {"gpu-d", 60, 700},
                         {"gpu-e", 15, 600}, {"gpu-f", 45, 500}, {"gpu-new", 120, 2000}};
struct Network {
  const char* name;
  double gflops, moved;
};
constexpr Network kNetworks[] = {{"small", 2, 50}, {"middle", 8, 90}, {"large", 40, 300}, {"wide", 10, 400}};

template <typename Thing>
const Thing& Named(std::span<const Thing> things, const std::string& name) {
  for (const Thing& thing : things) {
    if (thing.name == name) return thing;
  }
  internal::CheckFailed("the name is one of the made ones", __FILE__, __LINE__);
}

}  // namespace

// ms of an item on a device: 45 % of the peak, 70 % of the bandwidth, 5 ms a step, 3 % more a device.
double MadeSet::ItemsPerSecond(const std::string& gpu, const std::string& network, double batch,
                               int devices) {
  const Gpu& on = Named<Gpu>(kGpus, gpu);
  const Network& of = Named<Network>(kNetworks, network);
  const double time = (3 * of.gflops / on.tflops / 0.45 + of.moved / on.bandwidth / 0.7 + 5 / batch) *
                      (1 + 0.03 * (devices - 1));
  return 1000 * devices / time;
}

MadeSet MadeSet::Make() {
  MadeSet set{.spec = std::string(kSpec), .rows = {}, .hardware = {}, .networks = {}};
  set.hardware = "gpu,tflops,bandwidth\n";
  set.networks = "network,gflops,moved\n";
  for (const Gpu& gpu : kGpus) set.hardware += fmt::format("{},{},{}\n", gpu.name, gpu.tflops, gpu.bandwidth);
  for (const Network& n : kNetworks) set.networks += fmt::format("{},{},{}\n", n.name, n.gflops, n.moved);
  Random random(11);
  set.rows = "row_id,gpu,network,batch,gpu_count,precision,items_per_s\n";
  int id = 0;
  for (const Gpu& gpu : std::span(kGpus).first(6)) {
    for (const Network& network : kNetworks) {
      for (const int batch : {8, 32, 64}) {
        for (const int devices : {1, 2, 4}) {
          const double rate =
              ItemsPerSecond(gpu.name, network.name, batch, devices) * std::exp(0.02 * random.Normal());
          set.rows += fmt::format("r{},{},{},{},{},fp32,{:.6g}\n", id++, gpu.name, network.name, batch,
                                  devices, rate);
        }
      }
    }
  }
  return set;
}

Result<std::string> MadeSet::WriteTo(const std::string& folder) const {
  TRY_STATUS(MakeFolders(folder));
  const std::pair<const char*, const std::string*> files[] = {
      {"made.yaml", &spec}, {"made.csv", &rows}, {"hardware.csv", &hardware}, {"networks.csv", &networks}};
  for (const auto& [name, text] : files) TRY_STATUS(WriteFileWhole(folder + "/" + name, *text));
  return folder + "/made.yaml";
}

}  // namespace weir::predict
