// Requests and answers by chance, for the tests that hold one reading of them against another.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/seed.h"
#include "infer/call.h"
#include "infer/tensor.h"

namespace weir::oip::testing {

// Returns a tensor of any type with any bytes; some dimensions are zero or large.
infer::Tensor RandomTensor(Random& random, std::string name);
// With an id, parameters of every kind, priority, outputs and a wish for durations, or without.
infer::Request RandomRequest(Random& random);
// With durations, or without.
infer::Response RandomResponse(Random& random);

// `message` in pieces of any size, none among them.
std::vector<Bytes> Cut(std::string_view message, Random& random);
std::string Join(const std::vector<Bytes>& pieces);

// A tensor of BYTES.
infer::Tensor BytesTensor(std::string name, const std::vector<std::string>& elements);
// A tensor of numbers.
template <typename T>
infer::Tensor NumberTensor(std::string name, infer::DType dtype, infer::Shape shape,
                           const std::vector<T>& numbers) {
  return {.name = std::move(name),
          .dtype = dtype,
          .shape = std::move(shape),
          .data = Bytes::Copy(std::as_bytes(std::span(numbers)))};
}

// Returns the numbers that NumberTensor was given.
template <typename T>
std::vector<T> Numbers(const infer::Tensor& tensor) {
  std::vector<T> numbers(tensor.data.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor.data.data(), tensor.data.size());
  return numbers;
}

// Name, type, shape and bytes as one text, so that a difference can be read.
std::string Describe(const infer::Tensor& tensor);
std::string Describe(const std::vector<infer::Tensor>& tensors);

}  // namespace weir::oip::testing
