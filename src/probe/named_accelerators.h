// Accelerators as people ask for them: how many, and which card's step time they take.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "probe/storage_profile.h"

namespace weir::probe {

struct NamedAccelerators {
  int least = 1, most = 1;
  std::string card;  // empty: none is named
  bool operator==(const NamedAccelerators&) const = default;
};

// "8", "1:64", "h100", "8xh100" or "1:64xh100". kInvalidArgument for other texts.
Result<NamedAccelerators> ParseAccelerators(std::string_view text);

struct AskedCard {
  std::string card;       // empty: none is named
  std::string profile;    // the work whose published step time is taken; empty: none
  std::string predictor;  // a file of weir fit; empty: none
  std::string network;    // of the predictor's table, or a model
  int batch = 0;          // samples of a step; 0: not given
};

// kInvalidArgument names the flag that is missing, or that says nothing without another.
Status CheckCard(const AskedCard& asked);

// Returns the published profile of `profile` on `card`. `profile` is a workload ("resnet50"), or a whole name
// that must be of this card. Case does not matter in `card`. kNotFound names the cards of the workload,
// kInvalidArgument a profile of another card.
Result<StorageProfile> FindCardProfile(std::string_view profile, std::string_view card);

// Returns the time of one step in which `accelerators` cards share a batch of `batch` samples, each computing
// as fast as in the profile.
Duration StepOf(const StorageProfile& profile, int batch, int accelerators);

// A line for people: "a step of resnet50-h100 takes 224 ms for 400 samples (MLPerf Storage v2)".
std::string CardText(const StorageProfile& profile);

}  // namespace weir::probe
