// Choices that a person types: the values of an enum with their words, in one array beside the enum. Flags,
// factors, settings, checks, JSON and documents are made from that array; tools/check_choices.py finds words
// that are written a second time.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

template <typename Value>
struct Choice {
  Value value{};
  std::string_view word;
};
template <typename Value, size_t kCount>
using Choices = std::array<Choice<Value>, kCount>;

// The word of a value; empty for a value that has none.
template <typename Value, size_t kCount>
constexpr std::string_view WordOf(const Choices<Value, kCount>& choices, Value value) {
  for (const Choice<Value>& choice : choices) {
    if (choice.value == value) return choice.word;
  }
  return {};
}

// The choice that is called `word`; nullopt if none is.
template <typename Value, size_t kCount>
constexpr std::optional<Value> FindChoice(const Choices<Value, kCount>& choices, std::string_view word) {
  for (const Choice<Value>& choice : choices) {
    if (choice.word == word) return choice.value;
  }
  return std::nullopt;
}

// All words, in the order of the array.
template <typename Value, size_t kCount>
std::vector<std::string_view> WordsOf(const Choices<Value, kCount>& choices) {
  std::vector<std::string_view> words;
  for (const Choice<Value>& choice : choices) words.push_back(choice.word);
  return words;
}

// "http or grpc", "tensor, pixels or image".
template <typename Value, size_t kCount>
std::string ListOf(const Choices<Value, kCount>& choices) {
  std::string list;
  for (size_t i = 0; i < kCount; ++i) {
    if (i > 0) list += i + 1 == kCount ? " or " : ", ";
    list += choices[i].word;
  }
  return list;
}

}  // namespace weir
