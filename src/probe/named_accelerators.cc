#include "probe/named_accelerators.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace weir::probe {
namespace {

constexpr int kMost = 4096;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::optional<int> Number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > kMost)
    return std::nullopt;
  return value;
}

bool IsCount(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789:") == std::string_view::npos;
}

std::string_view CardOf(const StorageProfile& profile) {
  return profile.name.substr(profile.name.rfind('-') + 1);
}
std::string_view WorkloadOf(const StorageProfile& profile) {
  return profile.name.substr(0, profile.name.rfind('-'));
}

}  // namespace

Result<NamedAccelerators> ParseAccelerators(std::string_view text) {
  const auto refuse = [&] {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--accelerators {}: a number from 1 to {}, two as in 1:64, and a card if its step "
                    "time is to be taken, as in 8xh100",
                    Quoted(text), kMost));
  };
  NamedAccelerators asked;
  std::string_view count = text;
  if (const size_t times = text.find('x');
      times != std::string_view::npos && IsCount(text.substr(0, times))) {
    count = text.substr(0, times);
    asked.card = text.substr(times + 1);
    if (asked.card.empty()) return refuse();
  } else if (!IsCount(text)) {
    asked.card = text;
    if (asked.card.empty() || asked.card.find(':') != std::string::npos) return refuse();
    return asked;
  }
  const size_t colon = count.find(':');
  const auto least = Number(count.substr(0, colon));
  const auto most = colon == std::string_view::npos ? least : Number(count.substr(colon + 1));
  if (!least || !most || *most < *least) return refuse();
  asked.least = *least;
  asked.most = *most;
  return asked;
}

Status CheckCard(const AskedCard& asked) {
  const auto refuse = [](const char* what) { return Fail(ErrorCode::kInvalidArgument, what); };
  if (asked.card.empty() && (!asked.predictor.empty() || !asked.network.empty()))
    return refuse("--predictor and --network say nothing without a card: --accelerators 8xNAME");
  if (asked.predictor.empty() && !asked.network.empty())
    return refuse("--network names what --predictor is to predict: give a file of weir fit -o FILE");
  if (!asked.card.empty() && asked.predictor.empty() && asked.profile.empty())
    return refuse(
        "--accelerators names a card: say with --profile resnet50 which work it does, or with --predictor "
        "FILE where its step time comes from");
  if (!asked.predictor.empty() && asked.batch == 0)
    return refuse("--predictor wants --batch: the samples of a step");
  return {};
}

Result<StorageProfile> FindCardProfile(std::string_view profile, std::string_view card) {
  const std::string wanted = Lower(card);
  std::string cards, workloads;
  for (const StorageProfile& one : StorageProfiles()) {
    if (one.name == profile && CardOf(one) != wanted) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--profile {} is of another card than {}: give --profile {}", profile,
                              Quoted(card), WorkloadOf(one)));
    }
    if (one.name == profile || (WorkloadOf(one) == profile && CardOf(one) == wanted)) return one;
    if (WorkloadOf(one) == profile) cards += fmt::format("{}{}", cards.empty() ? "" : ", ", CardOf(one));
    if (workloads.find(WorkloadOf(one)) == std::string::npos)
      workloads += fmt::format("{}{}", workloads.empty() ? "" : ", ", WorkloadOf(one));
  }
  if (cards.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("there is no workload {}; there are {}, or predict the step with --predictor",
                            Quoted(profile), workloads));
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("no step time of {} on {} is published; there are {}, or predict it with "
                          "--predictor",
                          profile, Quoted(card), cards));
}

Duration StepOf(const StorageProfile& profile, int batch, int accelerators) {
  const int share = (batch + accelerators - 1) / accelerators;
  return profile.step * share / profile.batch;
}

std::string CardText(const StorageProfile& profile) {
  return fmt::format("a step of {} takes {:.4g} ms for {} samples ({})", profile.name,
                     1e3 * Seconds(profile.step), profile.batch, profile.source);
}

}  // namespace weir::probe
