// Levels that are more than a word or a number. Each check gives the level as it is kept, or kInvalidArgument
// with what is wanted.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace weir::study {

Result<Json> CheckInteger(const Json& level, int64_t low, int64_t high);

// "weir", or a map: one of `command` (a list), `image` and `url`; `name`; `ready` (a URL, needed where the
// server is started); `http` and `grpc` (its addresses); `model` (its name there); `arguments` (of an image).
Result<Json> CheckServer(const Json& level);
// "application", "closed", {rate_per_s, distribution}, or {streams, fps, deadline_ms}.
Result<Json> CheckLoad(const Json& level);
Result<Json> CheckServerBatching(const Json& level);
// "cpu", "cuda:N", "cuda:UUID", "cuda:all", "gpu:N" or "npu", as --device has them; several with commas.
Result<Json> CheckDevice(const Json& level);
// "unshaped", or {rate_gbit_per_s, delay_us} or {variable: {low_gbit_per_s, high_gbit_per_s, every_ms},
// delay_us}. A bare number is a rate; "variable" stands for from 1 to 5 Gbit/s, anew every 100 ms.
Result<Json> CheckNetwork(const Json& level);
std::string NetworkText(const Json& level);
// "shared", or {server, client}, each CPUs as taskset takes them ("0-3,6").
Result<Json> CheckPlacement(const Json& level);
// "none", or {serve, feed, prepare}: the cores that each phase may use at most; one that is absent has no
// limit.
Result<Json> CheckLimits(const Json& level);

// Whether a server can be spoken to over `protocol` ("http", "grpc"): by an address, or the URL's scheme.
bool Offers(const Json& server, std::string_view protocol);
// Whether a server that is already running does so on this machine. REQUIRES: it has a url.
bool IsLoopback(const Json& server);

}  // namespace weir::study
