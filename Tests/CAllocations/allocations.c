#include "allocations.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

// glibc lets a program put functions of its own in the place of malloc's, and offers the originals under these
// names.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static _Atomic uint64_t count;
static _Thread_local uint64_t thread_count;

uint64_t allocations_count(void) { return atomic_load_explicit(&count, memory_order_relaxed); }
uint64_t allocations_count_of_thread(void) { return thread_count; }

uint64_t allocations_bytes(void) {
  struct mallinfo2 counts = mallinfo2();
  return counts.uordblks + counts.hblkhd;
}

// Sanitizers put functions of their own there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOCATIONS_ARE_NOT_COUNTED
#endif
#endif

#ifndef ALLOCATIONS_ARE_NOT_COUNTED

static inline void add_one(void) {
  atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
  thread_count += 1;
}

void *malloc(size_t size) {
  add_one();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  add_one();
  return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
  add_one();
  return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  add_one();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
  add_one();
  *block = __libc_memalign(alignment, size);
  return *block == NULL ? 12 : 0;
}

#endif
