// Annotations for objects that pass between threads through the gRPC library. The library orders them, but it
// is built without ThreadSanitizer, which has to be told. Nothing in any other build.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
namespace weir::oip {
inline char tsan_sync_object = 0;  // its address stands for whatever is handed over
}
#endif
#endif

namespace weir::oip {

// Before something is asked of the library.
inline void AnnotateRelease() {
#ifdef WEIR_THREAD_SANITIZER
  __tsan_release(&tsan_sync_object);
#endif
}

// After it has told of something.
inline void AnnotateAcquire() {
#ifdef WEIR_THREAD_SANITIZER
  __tsan_acquire(&tsan_sync_object);
#endif
}

}  // namespace weir::oip
