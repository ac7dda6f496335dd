#ifndef CONNECT_THREAD_SANITIZER_H
#define CONNECT_THREAD_SANITIZER_H

// There is nothing to call: that these files are linked is enough.

#if defined(__has_feature) && defined(__linux__)
#if __has_feature(thread_sanitizer)

#define CONNECT_SHOWS_HAND_OVERS

// What came before the release of an address comes before what follows the next acquisition of it.
void __tsan_acquire(void *address);
void __tsan_release(void *address);

#endif
#endif

#endif
