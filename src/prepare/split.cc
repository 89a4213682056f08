#include "prepare/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/seed.h"
#include "dataset/hash.h"
#include "dataset/set_text.h"

namespace weir::prepare {
namespace {

constexpr size_t kMaxShares = 100;
constexpr double kSumTolerance = 1e-6;  // of shares that are written with few digits
constexpr double kNothing = 1e-9;       // a rest this small comes from rounding

std::optional<double> ShareIn(std::string_view text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || end != text.data() + text.size() || !(share > 0) || share >= 1)
    return std::nullopt;
  return share;
}

// Gives each label whole numbers of pictures, one label after the other.
class Quotas {
 public:
  explicit Quotas(const std::vector<SplitShare>& shares) : shares_(shares), owed_(shares.size()) {}

  // Returns the numbers for a label of `pictures` pictures: each its quota, rounded down or up. Those that
  // are rounded up are the shares that the labels before have left furthest behind.
  std::vector<int64_t> Next(int64_t pictures) {
    const size_t count = shares_.size();
    std::vector<int64_t> numbers(count);
    std::vector<bool> may_round_up(count);
    for (size_t i = 0; i < count; ++i) {
      const double quota = static_cast<double>(pictures) * shares_[i].share;
      const double whole = std::floor(quota + kNothing);
      numbers[i] = static_cast<int64_t>(whole);
      may_round_up[i] = quota - whole > kNothing;
      owed_[i] += quota - whole;
    }
    for (int64_t left = pictures - std::reduce(numbers.begin(), numbers.end()); left > 0; --left) {
      size_t best = count;
      for (size_t i = 0; i < count; ++i) {
        if (may_round_up[i] && (best == count || owed_[i] > owed_[best] + kNothing)) best = i;
      }
      if (best == count) best = 0;
      may_round_up[best] = false;
      numbers[best] += 1;
      owed_[best] -= 1;
    }
    return numbers;
  }

 private:
  const std::vector<SplitShare>& shares_;
  std::vector<double> owed_;  // pictures that each share has too few of so far
};

struct Ranked {
  uint64_t rank = 0;
  int64_t index = 0;
  auto operator<=>(const Ranked&) const = default;
};

uint64_t RankOf(std::string_view name, uint64_t seed) {
  const std::string text = fmt::format("{}\n{}", seed, name);
  const std::string hash = dataset::HashOf(std::as_bytes(std::span(text)));
  uint64_t rank = 0;
  std::from_chars(hash.data(), hash.data() + 16, rank, 16);
  return rank;
}

}  // namespace

Result<std::vector<SplitShare>> ParseSplit(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--split {}: {}; give shares that add up to 1, as 0.8,0.1,0.1 or "
                            "train=0.8,val=0.1,test=0.1",
                            text, why));
  };
  std::vector<SplitShare> shares;
  size_t named = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    SplitShare share;
    if (const size_t equals = item.find('='); equals != item.npos) {
      share.name = item.substr(0, equals);
      item.remove_prefix(equals + 1);
      named += 1;
      if (!dataset::IsSplitName(share.name))
        return refuse(fmt::format("\"{}\" is no name for a folder", share.name));
    }
    const std::optional<double> number = ShareIn(item);
    if (!number) return refuse(fmt::format("\"{}\" is not a share above 0 and below 1", item));
    share.share = *number;
    shares.push_back(std::move(share));
    if (shares.size() > kMaxShares) return refuse(fmt::format("more than {} shares", kMaxShares));
  }
  if (shares.size() < 2) return refuse("one share is the whole set");
  if (named != 0 && named != shares.size()) return refuse("either all shares have names, or none");
  if (named == 0) {
    constexpr std::string_view kNames[] = {"train", "val", "test"};
    if (shares.size() > std::size(kNames)) return refuse("more than three shares need names");
    for (size_t i = 0; i < shares.size(); ++i) shares[i].name = kNames[i];
  }
  double sum = 0;
  for (const SplitShare& share : shares) {
    sum += share.share;
    if (std::ranges::count(shares, share.name, &SplitShare::name) > 1)
      return refuse(fmt::format("\"{}\" is there twice", share.name));
  }
  if (std::abs(sum - 1) > kSumTolerance) return refuse(fmt::format("the shares add up to {:.6g}", sum));
  return shares;
}

std::string SplitText(const std::vector<SplitShare>& shares) {
  std::string text;
  for (const SplitShare& share : shares)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", share.name, share.share);
  return text;
}

std::vector<uint8_t> PlanSplit(const Feed& feed, const std::vector<SplitShare>& shares, uint64_t seed) {
  static_assert(kMaxShares <= UINT8_MAX);
  std::map<int, std::vector<Ranked>> by_label;                 // -1: without a label
  for (int64_t i = 0; i < feed.count - feed.not_taken; ++i) {  // the rest, rejects, are told of in the first
    const int label = feed.label ? feed.label(i).value_or(-1) : -1;
    by_label[label].push_back({RankOf(feed.name(i), seed), i});
  }
  std::vector<uint8_t> plan(static_cast<size_t>(feed.count));
  Quotas quotas(shares);
  for (auto& [label, pictures] : by_label) {
    std::ranges::sort(pictures);
    const std::vector<int64_t> numbers = quotas.Next(std::ssize(pictures));
    auto next = pictures.begin();
    for (size_t share = 0; share < numbers.size(); ++share) {
      for (int64_t k = 0; k < numbers[share]; ++k, ++next)
        plan[static_cast<size_t>(next->index)] = static_cast<uint8_t>(share);
    }
  }
  return plan;
}

std::vector<int64_t> DivideByShares(int64_t total, const std::vector<SplitShare>& shares) {
  return Quotas(shares).Next(total);
}

}  // namespace weir::prepare
