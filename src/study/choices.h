// The levels of a study's factors that are words, with the enum of each.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/choices.h"
#include "infer/choices.h"

namespace weir::study {

enum class Architecture : uint8_t {
  kInProcess,     // the recogniser is part of the application: there is no server
  kMicroservice,  // a server in a container on this machine
  kDistributed,   // a server on another node: here, behind a network link
};
inline constexpr Choices<Architecture, 3> kArchitectures{{{Architecture::kInProcess, "in-process"},
                                                          {Architecture::kMicroservice, "microservice"},
                                                          {Architecture::kDistributed, "distributed"}}};
constexpr std::string_view ToString(Architecture architecture) {
  return WordOf(kArchitectures, architecture);
}

enum class DataPath : uint8_t { kFiles, kFilesAtModelSize, kShards, kMemory };
inline constexpr Choices<DataPath, 4> kDataPaths{{{DataPath::kFiles, "files"},
                                                  {DataPath::kFilesAtModelSize, "files-at-model-size"},
                                                  {DataPath::kShards, "shards"},
                                                  {DataPath::kMemory, "memory"}}};
constexpr std::string_view ToString(DataPath path) { return WordOf(kDataPaths, path); }

// The form of what a client sends: a payload, or tensors that reach the server by memory instead of in
// requests.
enum class Sent : uint8_t { kTensor, kPixels, kImage, kSharedMemory };
inline constexpr Choices<Sent, 4> kSent{{{Sent::kTensor, ToString(infer::Payload::kTensor)},
                                         {Sent::kPixels, ToString(infer::Payload::kPixels)},
                                         {Sent::kImage, ToString(infer::Payload::kImage)},
                                         {Sent::kSharedMemory, "shared-memory"}}};
constexpr std::string_view ToString(Sent sent) { return WordOf(kSent, sent); }

enum class Balancer : uint8_t {
  kNone,  // the client takes turns
  kHaproxy,
  kNginx,
  kEnvoy,
  kRoundRobin,  // the client's gRPC library
};
inline constexpr Choices<Balancer, 5> kBalancers{{{Balancer::kNone, "none"},
                                                  {Balancer::kHaproxy, "haproxy"},
                                                  {Balancer::kNginx, "nginx"},
                                                  {Balancer::kEnvoy, "envoy"},
                                                  {Balancer::kRoundRobin, "round_robin"}}};
constexpr std::string_view ToString(Balancer balancer) { return WordOf(kBalancers, balancer); }

// Phases that run beside the client.
enum class Beside : uint8_t { kNone, kFeed, kPrepare, kBoth };
inline constexpr Choices<Beside, 4> kBeside{{{Beside::kNone, "none"},
                                             {Beside::kFeed, "feed"},
                                             {Beside::kPrepare, "prepare"},
                                             {Beside::kBoth, "prepare+feed"}}};
constexpr std::string_view ToString(Beside beside) { return WordOf(kBeside, beside); }

enum class PageCache : uint8_t { kWarm, kCold };
inline constexpr Choices<PageCache, 2> kPageCaches{{{PageCache::kWarm, "warm"}, {PageCache::kCold, "cold"}}};
constexpr std::string_view ToString(PageCache cache) { return WordOf(kPageCaches, cache); }

}  // namespace weir::study
