/* What a load saw, and how it tells it: one JSON object, times in microseconds. */

#ifndef FAIRPOOL_SEEN_H
#define FAIRPOOL_SEEN_H

#include <stdio.h>
#include <sys/resource.h>

#include "histogram.h"

enum error { CONNECT, LOST, CUT, MALFORMED, STATUS, SHORT, TIMEOUT, UNSENT, ERRORS };

static const char *const error_names[ERRORS] = {
    "connect",   /* no connection was to be had */
    "lost",      /* it ended before the first byte of an answer */
    "cut",       /* it ended before the last one */
    "malformed", /* the answer was no HTTP */
    "status",    /* it was none of success */
    "short",     /* a stream had fewer events than were asked for */
    "timeout",   /* the answer was not there in time */
    "unsent",    /* no connection was free in time */
};

static struct {
    uint64_t begun, large, answered, in_time, events, statuses[600], errors[ERRORS];
    struct histogram latency, large_latency, first_byte, sent_late, event_lateness;
} seen;

static void print_times(const char *name, const struct histogram *times) {
    printf(",\"%s\":{\"count\":%llu,\"mean\":%.1f,\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f}",
           name, (unsigned long long)times->count, times->count ? times->sum / (double)times->count / 1e3 : 0.0,
           (double)percentile(times, 0.5) / 1e3, (double)percentile(times, 0.9) / 1e3,
           (double)percentile(times, 0.99) / 1e3, (double)percentile(times, 0.999) / 1e3, (double)times->max / 1e3);
}

static void print_seen(double seconds) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"begun\":%llu,\"answered\":%llu,\"large\":%llu,\"per_second\":%.3f,\"events\":%llu,\"cpu_seconds\":%.3f",
           (unsigned long long)seen.begun, (unsigned long long)seen.answered, (unsigned long long)seen.large,
           (double)seen.in_time / seconds, (unsigned long long)seen.events,
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
    print_times("latency", &seen.latency);
    print_times("large_latency", &seen.large_latency);
    print_times("first_byte", &seen.first_byte);
    print_times("sent_late", &seen.sent_late);
    print_times("event_lateness", &seen.event_lateness);
    printf(",\"statuses\":{");
    const char *comma = "";
    for (int status = 0; status < 600; status++)
        if (seen.statuses[status]) {
            printf("%s\"%d\":%llu", comma, status, (unsigned long long)seen.statuses[status]);
            comma = ",";
        }
    printf("},\"errors\":{");
    for (int error = 0; error < ERRORS; error++)
        printf("%s\"%s\":%llu", error ? "," : "", error_names[error], (unsigned long long)seen.errors[error]);
    printf("}}\n");
}

#endif
