/* Counts times without keeping them: each percentile that it tells is at most 0.8 % above the true one, never below.
 *
 * Values up to 255 have a bucket each; beyond, every doubling has 128 buckets of equal width. */

#ifndef FAIRPOOL_HISTOGRAM_H
#define FAIRPOOL_HISTOGRAM_H

#include <math.h>
#include <stdint.h>

#define BITS 7
#define BUCKETS (((62 - BITS) << BITS) + (2 << BITS))

struct histogram {
    uint64_t count;
    int64_t max;
    double sum;
    uint64_t buckets[BUCKETS];
};

static inline int bucket_of(int64_t value) {
    int shift = value < (2 << BITS) ? 0 : 63 - __builtin_clzll((uint64_t)value) - BITS;
    return (shift << BITS) + (int)(value >> shift);
}

/* The greatest value that falls into a bucket. */
static inline int64_t greatest_in(int bucket) {
    int shift = bucket < (2 << BITS) ? 0 : (bucket >> BITS) - 1;
    return ((int64_t)(bucket - (shift << BITS) + 1) << shift) - 1;
}

/* A time before 0 counts as 0: clocks of several cores may differ by some nanoseconds. */
static inline void record(struct histogram *histogram, int64_t value) {
    if (value < 0)
        value = 0;
    histogram->count++;
    histogram->sum += (double)value;
    if (value > histogram->max)
        histogram->max = value;
    histogram->buckets[bucket_of(value)]++;
}

/* The least value that at least this part of all values do not exceed; 0 if there are none. */
static inline int64_t percentile(const struct histogram *histogram, double part) {
    uint64_t wanted = (uint64_t)ceil(part * (double)histogram->count), seen = 0;
    for (int bucket = 0; bucket < BUCKETS && histogram->count; bucket++) {
        seen += histogram->buckets[bucket];
        if (seen >= wanted && seen) {
            int64_t value = greatest_in(bucket);
            return value < histogram->max ? value : histogram->max;
        }
    }
    return histogram->max;
}

#endif
