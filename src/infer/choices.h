// Choices that a client, a server, a load and a study share, each with the word by which users name it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::infer {

enum class Protocol : uint8_t { kHttp, kGrpc };
inline constexpr std::array kProtocols = {Protocol::kHttp, Protocol::kGrpc};
std::string_view ToString(Protocol protocol);  // "http", "grpc"

enum class Mode : uint8_t {
  kSync,   // one batch at a time and nothing overlaps: load, send, wait, print
  kAsync,  // several batches at a time; loading, inference and printing overlap
};
inline constexpr std::array kModes = {Mode::kSync, Mode::kAsync};
std::string_view ToString(Mode mode);  // "sync", "async"

// The form in which a picture is sent. A server offers each under a name of its own.
enum class Payload : uint8_t {
  kTensor,  // NAME: the model's own tensors, as the recipe makes them
  kPixels,  // NAME.pixels: UINT8 [N,height,width,channels] at the recipe's size; the server normalises
  kImage,   // NAME.image: BYTES [N], the files as they are; the server decodes and prepares
};
inline constexpr std::array kPayloads = {Payload::kTensor, Payload::kPixels, Payload::kImage};
std::string_view ToString(Payload payload);  // "tensor", "pixels", "image"
std::string_view SuffixOf(Payload payload);  // "", ".pixels", ".image"

// How the calls of one client are spread over several servers.
enum class Balance : uint8_t {
  kRoundRobin,      // one after the other
  kLeastInFlight,   // to the one with the fewest calls under way
  kGrpcRoundRobin,  // by the gRPC library's own policy, over one channel
};
inline constexpr std::array kBalances = {Balance::kRoundRobin, Balance::kLeastInFlight,
                                         Balance::kGrpcRoundRobin};
std::string_view ToString(Balance balance);  // "round-robin", "least-in-flight", "grpc-round-robin"

// Returns the choice that is called `word`; nullopt if none is.
template <typename Choice, size_t kCount>
std::optional<Choice> FindChoice(const std::array<Choice, kCount>& choices, std::string_view word) {
  const auto found = std::ranges::find_if(choices, [&](Choice choice) { return ToString(choice) == word; });
  return found == choices.end() ? std::nullopt : std::optional(*found);
}

}  // namespace weir::infer
