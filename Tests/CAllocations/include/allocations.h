#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include <stdint.h>

// How many blocks the process has asked malloc and its like for since it began.
uint64_t allocations_count(void);

// The same for the calling thread alone.
uint64_t allocations_count_of_thread(void);

// How many bytes are allocated and not freed. Under a sanitizer, which has an allocator of its own, this does not change.
uint64_t allocations_bytes(void);

#endif
