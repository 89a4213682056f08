#include "results/server_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/count.h"

namespace weir::results {

ServerShares MakeServerShares(std::string balance, std::vector<ServerShares::Server> each) {
  ServerShares shares{.balance = std::move(balance), .each = std::move(each)};
  double answers = 0;
  for (const ServerShares::Server& server : shares.each) {
    answers += static_cast<double>(server.answered);
    shares.retried += server.moved;
  }
  if (answers == 0) return shares;
  const double mean = answers / static_cast<double>(shares.each.size());
  for (ServerShares::Server& server : shares.each) {
    const auto answered = static_cast<double>(server.answered);
    server.share = answered / answers;
    shares.imbalance = std::max(shares.imbalance, std::abs(answered - mean) / mean);
  }
  return shares;
}

std::string ServerSharesText(const ServerShares& shares) {
  std::string text =
      fmt::format("  {:<10} {}, {}; imbalance {:.2f} %; {} sent again to another server\n", "servers",
                  shares.each.size(), shares.balance, 100 * shares.imbalance, Count(shares.retried));
  for (const ServerShares::Server& server : shares.each) {
    text += fmt::format("  {:<10} {}: {} answered ({:.2f} %)", "", server.server, Count(server.answered),
                        100 * server.share);
    if (server.moved > 0) text += fmt::format(", {} moved away", Count(server.moved));
    if (server.failed > 0) text += fmt::format(", {} failed", Count(server.failed));
    text += "\n";
  }
  return text;
}

}  // namespace weir::results
