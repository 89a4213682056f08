// Choices that a client, a server, a load and a study share, each with the word by which users name it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/choices.h"

namespace weir::infer {

enum class Protocol : uint8_t { kHttp, kGrpc };
inline constexpr Choices<Protocol, 2> kProtocols{{{Protocol::kHttp, "http"}, {Protocol::kGrpc, "grpc"}}};
constexpr std::string_view ToString(Protocol protocol) { return WordOf(kProtocols, protocol); }
// As people write them, too.
inline constexpr Choices<Protocol, 5> kProtocolSpellings{{kProtocols[0],
                                                          kProtocols[1],
                                                          {Protocol::kHttp, "HTTP"},
                                                          {Protocol::kGrpc, "gRPC"},
                                                          {Protocol::kGrpc, "GRPC"}}};

enum class Mode : uint8_t {
  kSync,   // one batch at a time and nothing overlaps: load, send, wait, print
  kAsync,  // several batches at a time; loading, inference and printing overlap
};
inline constexpr Choices<Mode, 2> kModes{{{Mode::kSync, "sync"}, {Mode::kAsync, "async"}}};
constexpr std::string_view ToString(Mode mode) { return WordOf(kModes, mode); }

// The form in which a picture is sent. A server offers each under a name of its own.
enum class Payload : uint8_t {
  kTensor,  // NAME: the model's own tensors, as the recipe makes them
  kPixels,  // NAME.pixels: UINT8 [N,height,width,channels] at the recipe's size; the server normalises
  kImage,   // NAME.image: BYTES [N], the files as they are; the server decodes and prepares
};
inline constexpr Choices<Payload, 3> kPayloads{
    {{Payload::kTensor, "tensor"}, {Payload::kPixels, "pixels"}, {Payload::kImage, "image"}}};
constexpr std::string_view ToString(Payload payload) { return WordOf(kPayloads, payload); }
std::string_view SuffixOf(Payload payload);  // "", ".pixels", ".image"

// How the calls of one client are spread over several servers.
enum class Balance : uint8_t {
  kRoundRobin,      // one after the other
  kLeastInFlight,   // to the one with the fewest calls under way
  kGrpcRoundRobin,  // by the gRPC library's own policy, over one channel
};
inline constexpr Choices<Balance, 3> kBalances{{{Balance::kRoundRobin, "round-robin"},
                                                {Balance::kLeastInFlight, "least-in-flight"},
                                                {Balance::kGrpcRoundRobin, "grpc-round-robin"}}};
constexpr std::string_view ToString(Balance balance) { return WordOf(kBalances, balance); }

// Where pixels become a model's values.
enum class Preprocess : uint8_t { kCpu, kGpu };
inline constexpr Choices<Preprocess, 2> kPreprocess{{{Preprocess::kCpu, "cpu"}, {Preprocess::kGpu, "gpu"}}};
constexpr std::string_view ToString(Preprocess preprocess) { return WordOf(kPreprocess, preprocess); }

// Arithmetic where a model says float.
enum class Precision : uint8_t { kF32, kBf16, kF16, kTf32 };
inline constexpr Choices<Precision, 4> kPrecisions{{{Precision::kF32, "f32"},
                                                    {Precision::kBf16, "bf16"},
                                                    {Precision::kF16, "f16"},
                                                    {Precision::kTf32, "tf32"}}};  // CUDA's alone
constexpr std::string_view ToString(Precision precision) { return WordOf(kPrecisions, precision); }

// The program that computes. engine.cc has the table of their functions.
enum class EngineKind : uint8_t { kOnnxRuntime, kOpenVino, kEmulated };
inline constexpr Choices<EngineKind, 3> kEngines{{{EngineKind::kOnnxRuntime, "onnxruntime"},
                                                  {EngineKind::kOpenVino, "openvino"},
                                                  {EngineKind::kEmulated, "emulated"}}};
constexpr std::string_view ToString(EngineKind engine) { return WordOf(kEngines, engine); }
// Begins a specification with settings: "emulated:base=1ms".
inline constexpr std::string_view kEmulatedPrefix = "emulated:";

// How tensors reach a server of this machine.
enum class SharedMemory : uint8_t { kNone, kSystem };
inline constexpr Choices<SharedMemory, 2> kSharedMemories{
    {{SharedMemory::kNone, "none"}, {SharedMemory::kSystem, "system"}}};
constexpr std::string_view ToString(SharedMemory memory) { return WordOf(kSharedMemories, memory); }

// How requests of a rate are spread in time.
enum class Distribution : uint8_t { kConstant, kPoisson, kGamma };
inline constexpr Choices<Distribution, 3> kDistributions{{{Distribution::kConstant, "constant"},
                                                          {Distribution::kPoisson, "poisson"},
                                                          {Distribution::kGamma, "gamma"}}};
constexpr std::string_view ToString(Distribution distribution) {
  return WordOf(kDistributions, distribution);
}

// A switch where a word is wanted: in a study, and in a model's configuration.
inline constexpr Choices<bool, 2> kOffOn{{{false, "off"}, {true, "on"}}};

}  // namespace weir::infer
