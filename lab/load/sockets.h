/* Sockets of this machine, and what cannot be had said in one line. */

#ifndef FAIRPOOL_SOCKETS_H
#define FAIRPOOL_SOCKETS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"

/* End with status 2, as programs do that cannot use what they were given. */
__attribute__((format(printf, 1, 2), noreturn)) static inline void give_up(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static inline void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory && count)
        give_up("no memory for %zu times %zu bytes", count, size);
    return memory;
}

/* Allow this process as many descriptors as it may have, of which it needs so many. */
static inline void allow_descriptors(rlim_t needed) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < needed)
        give_up("%llu file descriptors are needed, and `ulimit -Hn` allows %llu", (unsigned long long)needed,
                (unsigned long long)limit.rlim_max);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static inline struct sockaddr_in loopback(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static inline int tcp_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        give_up("no socket: %s", strerror(errno));
    return fd;
}

static inline void without_delay(int fd) {
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static inline void watch(int epoll, int operation, int fd, uint32_t events, void *owner) {
    struct epoll_event event = {.events = events, .data.ptr = owner};
    if (epoll_ctl(epoll, operation, fd, &event))
        give_up("epoll_ctl: %s", strerror(errno));
}

/* Have the program's one timer go off at a time of `now()`, or at once if that is over; 0 for never. */
static inline void set_timer(int timer, int64_t at) {
    static int64_t set;
    if (at == set)
        return;
    set = at;
    struct itimerspec when = {.it_value = {.tv_sec = at / NANOSECONDS, .tv_nsec = at % NANOSECONDS}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

#endif
