#include "study/rules.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "infer/device.h"
#include "study/choices.h"
#include "study/factor.h"
#include "study/level.h"

namespace weir::study {
namespace {

class Rules {
 public:
  explicit Rules(const Json& combination) {
    for (const Factor& factor : Factors()) {
      const std::string name(factor.name);
      if (combination.contains(name)) sense_.factors[name] = combination[name];
    }
  }

  Sense Apply() {
    Architecture();
    Server();
    Load();
    DataPath();
    Engine();
    Mode();
    return std::move(sense_);
  }

 private:
  Json Level(std::string_view name) const {
    const auto found = sense_.factors.find(std::string(name));
    if (found != sense_.factors.end()) return *found;
    for (const Factor& factor : Factors()) {
      if (factor.name == name && factor.otherwise) return *factor.otherwise;
    }
    return nullptr;
  }
  bool Has(std::string_view name) const { return sense_.factors.contains(std::string(name)); }

  void Without(std::initializer_list<std::string_view> names, std::string_view why) {
    for (const std::string_view name : names) {
      if (sense_.factors.erase(std::string(name)) > 0)
        sense_.changes.push_back(fmt::format("{} is not applicable: {}", name, why));
    }
  }
  void Drop(std::string why) {
    if (!sense_.dropped) sense_.dropped = std::move(why);
  }

  void Architecture();
  void Server();
  void ServerOfOthers(const Json& server);
  void Balancer();
  void Load();
  void Clients();
  void DataPath();
  void Engine();
  void Device();
  bool OnAccelerator() const { return Has("gpus") || Level("device") != ToString(infer::Device::Kind::kCpu); }
  void Mode();

  Sense sense_;
};

// Who names a server wants it measured: without a word of the architecture it is where that server is.
void Rules::Architecture() {
  if (!Has("architecture") && Has("server")) {
    const Json server = Level("server");
    const bool away = server.is_object() && server.contains("url") && !IsLoopback(server);
    sense_.factors["architecture"] =
        ToString(away ? Architecture::kDistributed : Architecture::kMicroservice);
    sense_.changes.push_back(fmt::format("architecture is {}: a server is named",
                                         sense_.factors["architecture"].get<std::string>()));
  }
  const Json architecture = Level("architecture");
  if (architecture == ToString(Architecture::kInProcess)) {
    Without({"server", "protocol", "payload", "servers", "balancer", "clients", "server_batching", "network",
             "placement", "limits"},
            "there is no server in one process");
    if (!OnAccelerator()) Without({"instances"}, "there is no server in one process");
  } else if (architecture == ToString(Architecture::kMicroservice)) {
    Without({"network"}, "a microservice is on the host of the application");
    Without({"limits"}, "a container has limits of its own");
  } else if (Level("payload") == ToString(Sent::kSharedMemory)) {
    Drop("payload shared-memory: two nodes share no memory");
  }
}

void Rules::Server() {
  const Json server = Level("server");
  if (Level("architecture") != ToString(Architecture::kInProcess) && server.is_object())
    ServerOfOthers(server);
  Balancer();
}

void Rules::Balancer() {
  const Json balancer = Level("balancer");
  if (balancer == ToString(Balancer::kNone)) return;
  if (balancer == ToString(Balancer::kRoundRobin)) {
    if (Level("protocol") != ToString(infer::Protocol::kGrpc))
      Drop("balancer round_robin: it is the gRPC library's; give protocol: grpc");
    if (Level("servers") == 1)
      Without({"balancer"}, "round_robin has nothing to choose between with one server");
    return;
  }
  if (Level("payload") == ToString(Sent::kSharedMemory))
    Drop(fmt::format("payload shared-memory: behind {} each server would have to know the memory",
                     balancer.get<std::string>()));
}

void Rules::ServerOfOthers(const Json& server) {
  const std::string name = LevelText("server", server);
  Without({"engine", "accelerator", "device", "gpus", "preprocess", "cuda_graph", "precision", "threads",
           "streams", "servers", "balancer"},
          fmt::format("the server {} has settings of its own", name));
  if (!server.contains("repository"))
    Without({"instances", "server_batching"},
            fmt::format("the server {} has settings of its own; with repository: FOLDER the study sets them",
                        name));
  const std::string payload = Level("payload").get<std::string>();
  if (payload == ToString(Sent::kPixels) || payload == ToString(Sent::kImage))
    Drop(fmt::format("payload {}: only weir's server takes it, not {}", payload, name));
  const std::string protocol = Level("protocol").get<std::string>();
  if (!Offers(server, protocol))
    Drop(fmt::format("protocol {0}: the server {1} has no address for it; give it {0}: {0}://HOST:PORT",
                     protocol, name));
  if (!server.contains("url")) return;
  Without({"limits"},
          fmt::format("the server {} is running already, in the control group that it has", name));
  Without({"network"},
          fmt::format("the server {} is running already, and no link of ours leads to it", name));
  if (Level("placement").is_object())
    Drop(fmt::format("placement: the server {} is running already, on the cores it has", name));
  const bool here = IsLoopback(server);
  if (here != (Level("architecture") == ToString(Architecture::kMicroservice))) {
    Drop(fmt::format("architecture {}: the server {} is already running {}",
                     Level("architecture").get<std::string>(), name, here ? "on this host" : "on another"));
  }
}

void Rules::Load() {
  const Json load = Level("load");
  if (load == "application") {
    Without({"clients"}, "the application is one program");
    if (Has("payload") && Level("payload") == ToString(Sent::kSharedMemory))
      Drop("payload shared-memory: the application sends its pictures; load: closed can share them");
    return;
  }
  if (load.is_object() && load.contains("streams")) {
    Without({"data_path", "images", "replication", "page_cache", "decode_threads", "clients"},
            "the client draws its live streams");
    Without({"mode", "in_flight", "batch"}, "frames of live streams go one by one, as they come");
    if (Level("architecture") == ToString(Architecture::kInProcess))
      Without({"preprocess", "cuda_graph"}, "weir watch gives the model its tensor, in batches of any size");
    const std::string payload = Level("payload").get<std::string>();
    if (Has("payload") && payload != ToString(Sent::kTensor))
      Drop(fmt::format("payload {}: frames of live streams are sent as tensors", payload));
    return;
  }
  Without({"data_path", "images", "replication", "page_cache", "decode_threads"},
          "the load generator's requests are made beforehand");
  if (load.is_object()) Without({"mode", "in_flight"}, "an open loop does not wait for answers");
  Clients();
}

void Rules::Clients() {
  const Json clients = Level("clients");
  if (clients == 1) return;
  if (Level("payload") == ToString(Sent::kSharedMemory))
    Drop("payload shared-memory: several clients share none with the server");
  if (Level("load") != "closed" || Level("mode") == ToString(infer::Mode::kSync)) return;
  const int64_t in_flight = Has("in_flight") ? Level("in_flight").get<int64_t>() : 1;
  if (in_flight < clients.get<int64_t>())
    Drop(fmt::format("clients {}: each needs a request in flight, and in_flight is {}", DumpJson(clients),
                     in_flight));
}

void Rules::DataPath() {
  if (Level("data_path") == ToString(DataPath::kMemory))
    Without({"page_cache", "decode_threads"}, "the data lie in memory before the clock starts");
}

void Rules::Engine() {
  if (Has("accelerator") && Level("accelerator") != "none")
    Without({"engine"}, "the accelerator takes its place");
  const auto is_emulated = [](const Json& level) {
    return level.is_string() && level.get_ref<const std::string&>().starts_with(infer::kEmulatedPrefix);
  };
  if (!is_emulated(Level("engine")) && !is_emulated(Level("accelerator"))) return Device();
  Without({"device", "gpus", "preprocess", "cuda_graph", "threads", "streams", "instances"},
          "an emulated accelerator has no CPU threads, and its streams in its settings");
  if (Level("precision") != ToString(infer::Precision::kF32))
    Drop(fmt::format("precision {}: an emulated accelerator has f32 only",
                     Level("precision").get<std::string>()));
}

// A GPU takes no CPU threads; what is of CUDA alone says nothing elsewhere.
void Rules::Device() {
  const bool is_cuda =
      Has("gpus") || Level("device").get<std::string>().starts_with(ToString(infer::Device::Kind::kCuda));
  if (Has("gpus") && Has("device")) {
    if (!Level("device").get<std::string>().starts_with(ToString(infer::Device::Kind::kCuda)))
      Without({"gpus"}, fmt::format("device {} is none of CUDA", Level("device").get<std::string>()));
    else
      Without({"device"}, "gpus says which devices");
  }
  if (OnAccelerator()) Without({"threads"}, "an accelerator takes no CPU threads");
  if (!is_cuda) Without({"preprocess", "cuda_graph"}, "the device is none of CUDA");
  if (!is_cuda && Level("precision") == ToString(infer::Precision::kTf32))
    Drop("precision tf32: only CUDA has it; give device: cuda:0");
}

void Rules::Mode() {
  if (Level("mode") != ToString(infer::Mode::kSync) || Level("load").is_object() || !Has("in_flight") ||
      Level("in_flight") == 1)
    return;
  sense_.changes.push_back(fmt::format("in_flight {} is 1: in sync mode there is one batch at a time",
                                       DumpJson(Level("in_flight"))));
  sense_.factors["in_flight"] = 1;
}

}  // namespace

Sense MakeSense(const Json& combination) { return Rules(combination).Apply(); }

}  // namespace weir::study
