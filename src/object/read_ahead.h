// Objects that are read one after the other, fetched before they are asked for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "object/source.h"

namespace weir::object {

// Readers ask for objects by number, roughly rising, each once; some dozens are under way ahead of them, so
// that a store's latency costs nothing. A reader that jumps gets no read-ahead until it goes on in order.
// Thread-safe.
class ReadAhead {
 public:
  struct Item {
    std::string key, etag;        // etag empty: any
    std::optional<int64_t> size;  // absent: not known; such an item is never fetched ahead
  };
  struct Options {
    int64_t ahead = 128;                // objects
    int64_t ahead_bytes = 128LL << 20;  // of them together; one is always allowed
  };
  ReadAhead(std::shared_ptr<ObjectSource> source, std::vector<Item> items, Options options);
  ReadAhead(std::shared_ptr<ObjectSource> source, std::vector<Item> items);
  // Fetches under way are left to end by themselves.
  ~ReadAhead();

  const Item& item(int64_t index) const { return items_[static_cast<size_t>(index)]; }
  ObjectSource& source() const { return *source_; }
  // Returns the object's bytes; errors as ReadWhole. REQUIRES: 0 <= index < the items' number. Blocks.
  Result<Bytes> Load(int64_t index, uint64_t max_bytes) EXCLUDES(shared_->mutex);

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    // Begun and not yet taken; nullopt: under way.
    std::map<int64_t, std::optional<Result<Response>>> slots GUARDED_BY(mutex);
    int64_t slot_bytes GUARDED_BY(mutex) = 0;
    int64_t frontier GUARDED_BY(mutex) = 0;  // the first that has not been begun
  };

  void StartAhead(int64_t index) EXCLUDES(shared_->mutex);

  const std::shared_ptr<ObjectSource> source_;
  const std::vector<Item> items_;
  const Options options_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace weir::object
