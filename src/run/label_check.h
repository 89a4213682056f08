// Whether the labels of pictures are classes of the model that answers, so that its answers can be counted.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "dataset/source.h"
#include "run/application.h"

namespace weir::run {

// Whether two names mean one class: as words, in any case, with _ for a space; or one of them begins with the
// other as a word ("n01440764 tench"); or one of the synonyms in it, which commas part, is the other's.
bool IsSameClass(std::string_view a, std::string_view b);

// kInvalidArgument says why the labels of `listing` cannot be held against the answers of `target`: one lies
// outside its classes, or the set calls it by another name than the model does. Names are compared for labels
// that pictures have, where both sides have one.
Status CheckLabels(const dataset::Listing& listing, const Target& target);

}  // namespace weir::run
