#include "prepare/input_list.h"

#include <cstring>

namespace weir::prepare {

void InputList::Add(const ListedInput& input) {
  CHECK(input.name.size() <= kMaxName);
  if (kChunk - used_ < input.name.size()) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(kChunk));
    used_ = 0;
  }
  char* name = chunks_.empty() ? nullptr : chunks_.back().get() + used_;
  if (!input.name.empty()) std::memcpy(name, input.name.data(), input.name.size());
  used_ += input.name.size();
  items_.push_back({name, static_cast<uint32_t>(input.name.size()), input.folder_bytes,
                    input.label.value_or(-1), input.container, input.offset, input.bytes, input.kind,
                    input.is_folder});
}

void InputList::SetLabel(int64_t index, std::optional<int> label) {
  items_[static_cast<size_t>(index)].label = label.value_or(-1);
}

ListedInput InputList::operator[](int64_t index) const {
  const Item& item = items_[static_cast<size_t>(index)];
  return {.kind = item.kind,
          .is_folder = item.is_folder,
          .name = {item.name, item.name_bytes},
          .folder_bytes = item.folder_bytes,
          .label = item.label < 0 ? std::nullopt : std::optional(item.label),
          .container = item.container,
          .offset = item.offset,
          .bytes = item.bytes};
}

}  // namespace weir::prepare
