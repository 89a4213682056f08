// Memory that this process and a server on the same machine both see: requests whose tensors stay where they
// are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "infer/call.h"
#include "infer/endpoint.h"

namespace weir::load {

inline constexpr uint64_t kMostSharedBytes = uint64_t{64}
                                             << 20;  // of inputs, and of outputs, of all requests

// A region of POSIX shared memory, mapped here, which goes with this object.
class SharedMemory {
 public:
  // kIo where the system has none, or not so much.
  static Result<std::unique_ptr<SharedMemory>> Create(uint64_t size);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  const std::string& key() const { return key_; }  // for shm_open
  // Takes the key away, so that nothing is left behind whatever becomes of this process: who has opened it
  // keeps it.
  void Hide();
  uint64_t size() const { return size_; }
  std::byte* data() { return data_; }

 private:
  SharedMemory(std::string key, std::byte* data, uint64_t size)
      : key_(std::move(key)), data_(data), size_(size) {}
  const std::string key_;
  std::byte* const data_;
  const uint64_t size_;
  bool hidden_ = false;
};

// Requests that keep their inputs in one region, and their outputs in another.
struct SharedRequests {
  std::vector<infer::Request> requests;
  std::vector<infer::RequestForm> forms;          // one for each
  std::unique_ptr<SharedMemory> inputs, outputs;  // `outputs`: none where they are sent
};

// As many of `requests` as kMostSharedBytes hold, one at least. `output_bytes`: the bytes for each output of
// a request; where it is 0 it follows from the model's shapes, with `batch` rows, and outputs whose size is
// not known are sent. The regions are called `name` + "-in" and "-out": they are to be registered under these
// names. kInvalidArgument where one request is larger than that.
Result<SharedRequests> ShareRequests(const std::vector<infer::Request>& requests,
                                     const infer::ModelInfo& model, int batch, uint64_t output_bytes,
                                     const std::string& name);

}  // namespace weir::load
