// Memory of a file that another process may cut off at any moment.
#pragma once

#include <cstddef>
#include <memory>

#include "base/error.h"

namespace weir::serve {

// A shared mapping. What its owner has cut off reads as zeros from then on, writes to it are lost, and IsCut
// says so: ask it after the use, for there is no moment before which it is sure. Thread-safe. From the
// first one on SIGBUS is handled, for the whole process; those of other memory go where they went before.
class GuardedMemory {
 public:
  // Takes over what mmap gave. kOverloaded past 8,192 of them in the process.
  static Result<std::shared_ptr<const GuardedMemory>> Own(void* data, size_t size);
  ~GuardedMemory();  // unmaps
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  bool IsCut() const;

 private:
  GuardedMemory(size_t number, std::byte* data, size_t size) : number_(number), data_(data), size_(size) {}

  const size_t number_;  // its place among those that the handler knows
  std::byte* const data_;
  const size_t size_;
};

}  // namespace weir::serve
