// Shows thread sanitizer that resuming a continuation comes before what its task does next. The sanitizer sees this where
// the task has suspended, but not where it finds the continuation resumed already: it does so by an atomic load in
// libswift_Concurrency, which is not built with the sanitizer. All that is handed over so looks like a race. The functions
// here stand in front of those of libswift_Concurrency, and tell.

#define _GNU_SOURCE  // RTLD_NEXT

#include "thread_sanitizer.h"

#ifdef CONNECT_SHOWS_HAND_OVERS

#include <dlfcn.h>

#define SWIFT __attribute__((swiftcall))
#define ASYNC __attribute__((swiftasynccall))

SWIFT void *swift_task_getCurrent(void);

typedef SWIFT void (*resume_function)(void *task);
typedef SWIFT void (*throw_function)(void *task, void *error);
typedef ASYNC void (*await_function)(void *context);

// A continuation is a pointer to its task.

SWIFT void swift_continuation_resume(void *task) {
  __tsan_release(task);
  ((resume_function)dlsym(RTLD_NEXT, "swift_continuation_resume"))(task);
}

SWIFT void swift_continuation_throwingResume(void *task) {
  __tsan_release(task);
  ((resume_function)dlsym(RTLD_NEXT, "swift_continuation_throwingResume"))(task);
}

SWIFT void swift_continuation_throwingResumeWithError(void *task, void *error) {
  __tsan_release(task);
  ((throw_function)dlsym(RTLD_NEXT, "swift_continuation_throwingResumeWithError"))(task, error);
}

ASYNC void swift_continuation_await(void *context) {
  __tsan_acquire(swift_task_getCurrent());
  await_function original = (await_function)dlsym(RTLD_NEXT, "swift_continuation_await");
  __attribute__((musttail)) return original(context);
}

#endif
