#include "oip/server_shares.h"

#include <utility>

#include "base/json.h"

namespace weir::oip {

std::optional<results::ServerShares> SharesOf(infer::Balance balance,
                                              const std::vector<infer::ServerCalls>& calls) {
  if (calls.empty()) return std::nullopt;
  std::vector<results::ServerShares::Server> each;
  for (const infer::ServerCalls& one : calls) {
    each.push_back({.server = EscapeBytes(one.server),
                    .answered = static_cast<int64_t>(one.answered),
                    .failed = static_cast<int64_t>(one.failed),
                    .moved = static_cast<int64_t>(one.moved)});
  }
  return results::MakeServerShares(std::string(ToString(balance)), std::move(each));
}

}  // namespace weir::oip
