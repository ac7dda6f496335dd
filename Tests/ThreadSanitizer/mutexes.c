// Shows thread sanitizer what `Synchronization.Mutex` does on Linux. A mutex that nobody holds is locked and unlocked by
// code that is compiled into the caller, which the sanitizer sees. One that several threads want goes through two
// functions of libswiftSynchronization and the kernel, which it does not see: all that such a mutex protects, and all that
// is handed over through it, looks like a race. The functions here stand in front of those two, and tell.

#define _GNU_SOURCE  // RTLD_NEXT

#include "thread_sanitizer.h"

#ifdef CONNECT_SHOWS_HAND_OVERS

#include <dlfcn.h>
#include <stdint.h>

// `_MutexHandle._lockSlow(UInt32)` and `_MutexHandle._unlockSlow()`.
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

typedef SWIFT void (*lock_function)(uint32_t thread, SELF void *mutex);
typedef SWIFT void (*unlock_function)(SELF void *mutex);

SWIFT void connect_lock_slow(uint32_t thread, SELF void *mutex) __asm__(LOCK_SLOW);
SWIFT void connect_unlock_slow(SELF void *mutex) __asm__(UNLOCK_SLOW);

SWIFT void connect_lock_slow(uint32_t thread, SELF void *mutex) {
  ((lock_function)dlsym(RTLD_NEXT, LOCK_SLOW))(thread, mutex);
  __tsan_acquire(mutex);
}

SWIFT void connect_unlock_slow(SELF void *mutex) {
  __tsan_release(mutex);
  ((unlock_function)dlsym(RTLD_NEXT, UNLOCK_SLOW))(mutex);
}

#endif
