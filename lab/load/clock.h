/* One clock for both programs: what one of them stamps, the other can compare with its own time. */

#ifndef FAIRPOOL_CLOCK_H
#define FAIRPOOL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NANOSECONDS 1000000000LL

/* Nanoseconds since some moment that is the same for all processes of this machine. */
static inline int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * NANOSECONDS + time.tv_nsec;
}

#endif
