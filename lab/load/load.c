/* Asks an endpoint, or a gateway in front of it, and tells how long the answers took.
 *
 * What always holds: the time of an answer counts from the moment at which its request was intended to be sent, so that
 * a server that keeps everybody waiting is measured as it is met; every request that was begun is answered or is an
 * error of one kind; and no request that was due is left out because it could not be sent in time.
 *
 * closed: so many connections, each of which asks again once it is answered. open: requests at random moments, so many
 * in a second, whether others are answered or not. streams: so many requests whose answers are streams, and the
 * lateness of each event against the time that it carries, as `@` and 19 digits of nanoseconds. */

#include <sys/uio.h>

#include "asked.h"
#include "message.h"
#include "seen.h"

#define PIECE 262144
#define EVENTS 512
#define STAMP 19 /* digits */
#define TICK 50  /* milliseconds between two looks for requests that take too long */
#define ADDRESSES 250

struct connection {
    int fd; /* -1 while there is none */
    bool connected, writing, busy;
    bool large, counted, begun; /* of its request, and whether its answer has begun */
    int64_t intended;
    struct iovec unsent[2];
    struct message answer;
    uint64_t events;
    int64_t stamp;
    int digits; /* of a stamp that has begun, -1 outside of one */
    struct connection *before, *after; /* among those that are busy, in the order of what was intended */
};

static int epoll;
static int64_t began, counts_from, ends, read_at;
static struct connection *connections, **idle, busy = {.before = &busy, .after = &busy};
static int idle_count;

/* When the next request is intended, and how many were before it. */
static struct {
    int64_t next;
    uint64_t number;
} schedule;

static int64_t nanoseconds(double seconds) {
    return (int64_t)(seconds * (double)NANOSECONDS);
}

static uint64_t mixed(uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

/* A number of [0, 1) that depends on nothing but the seed, the request, and what it is for. */
static double chance(uint64_t purpose) {
    return (double)(mixed(mixed(2 * asked.seed + purpose) + schedule.number) >> 11) * 0x1p-53;
}

static bool none_left(int64_t time) {
    if (asked.mode == STREAMS)
        return schedule.number == (uint64_t)asked.connections;
    return (asked.mode == CLOSED ? time : schedule.next) >= ends;
}

static void plan_next(void) {
    if (asked.mode == OPEN)
        schedule.next += nanoseconds(-log1p(-chance(0)) / asked.rate);
    schedule.number++;
    if (asked.mode == STREAMS)
        schedule.next = began + nanoseconds(asked.ramp * (double)schedule.number / asked.connections);
}

static void close_connection(struct connection *connection) {
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
    connection->connected = connection->writing = false;
}

static void set_free(struct connection *connection) {
    connection->busy = false;
    connection->before->after = connection->after;
    connection->after->before = connection->before;
    idle[idle_count++] = connection;
}

static void fail(struct connection *connection, enum error error) {
    seen.errors[error]++;
    close_connection(connection);
    set_free(connection);
}

/* The connection has ended, and not because it was told to. */
static void lose(struct connection *connection) {
    if (!connection->busy)
        close_connection(connection);
    else
        fail(connection, connection->begun ? CUT : connection->connected ? LOST : CONNECT);
}

static void complete(struct connection *connection) {
    const struct message *answer = &connection->answer;
    seen.statuses[answer->status]++;
    if (answer->closes || answer->part == UNTIL_END || asked.churn)
        close_connection(connection);
    set_free(connection);
    if (answer->status / 100 != 2)
        seen.errors[STATUS]++;
    else if (connection->events < asked.events)
        seen.errors[SHORT]++;
    else {
        seen.answered++;
        seen.in_time += read_at >= counts_from && read_at < ends;
        if (connection->counted)
            record(connection->large ? &seen.large_latency : &seen.latency, read_at - connection->intended);
    }
}

static void be_writing(struct connection *connection, bool writing) {
    if (connection->writing != writing)
        watch(epoll, EPOLL_CTL_MOD, connection->fd, writing ? EPOLLIN | EPOLLOUT : EPOLLIN, connection);
    connection->writing = writing;
}

static void send_rest(struct connection *connection) {
    struct iovec *unsent = connection->unsent;
    struct msghdr message = {.msg_iov = unsent, .msg_iovlen = 2};
    ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        lose(connection);
        return;
    }
    connection->connected |= sent > 0;
    for (int part = 0; part < 2 && sent > 0; part++) {
        size_t taken = unsent[part].iov_len < (size_t)sent ? unsent[part].iov_len : (size_t)sent;
        unsent[part].iov_base = (char *)unsent[part].iov_base + taken;
        unsent[part].iov_len -= taken;
        sent -= (ssize_t)taken;
    }
    be_writing(connection, unsent[0].iov_len || unsent[1].iov_len);
}

/* Come from one of many addresses: a port that was used rests for a while, and one address has but some 28,000 of them,
 * so that with a connection for each request the search for a free one would be what is measured. */
static void come_from_elsewhere(int fd) {
    struct sockaddr_in address = loopback(0);
    int yes = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)(schedule.number % ADDRESSES));
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address))
        give_up("an address of this machine: %s", strerror(errno));
}

static void dial(struct connection *connection) {
    struct sockaddr_in address = loopback(asked.port);
    connection->fd = tcp_socket();
    without_delay(connection->fd);
    if (asked.churn)
        come_from_elsewhere(connection->fd);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) {
        fail(connection, CONNECT);
        return;
    }
    watch(epoll, EPOLL_CTL_ADD, connection->fd, EPOLLIN | EPOLLOUT, connection);
    connection->writing = true;
}

static void begin(int64_t intended) {
    struct connection *connection = idle[--idle_count];
    bool large = asked.large_share > 0 && chance(1) < asked.large_share;
    struct bytes head = asked.heads[large][schedule.number % asked.keys], body = asked.bodies[large];
    connection->busy = true;
    connection->begun = false;
    connection->large = large;
    connection->intended = intended;
    connection->counted = asked.mode == STREAMS || intended >= counts_from;
    connection->events = 0;
    connection->digits = -1;
    connection->unsent[0] = (struct iovec){head.start, head.length};
    connection->unsent[1] = (struct iovec){body.start, body.length};
    await_message(&connection->answer, false);
    connection->before = busy.before;
    connection->after = &busy;
    connection->before->after = busy.before = connection;
    seen.begun++;
    seen.large += large;
    if (connection->counted)
        record(&seen.sent_late, now() - intended);
    if (connection->fd < 0)
        dial(connection);
    else
        send_rest(connection);
}

/* How many connections may be in use: all of them, once the ramp is over. */
static int allowed(int64_t time) {
    int64_t passed = time - began, ramp = nanoseconds(asked.ramp);
    if (asked.mode != CLOSED || passed >= ramp)
        return asked.connections;
    return 1 + (int)((double)asked.connections * (double)passed / (double)ramp);
}

/* Begin what is due, as far as connections are free; the others wait, and so does the clock of each of them. */
static void begin_due(void) {
    for (int64_t time; time = now(), !none_left(time) && schedule.next <= time;) {
        if (asked.connections - idle_count < allowed(time))
            begin(asked.mode == CLOSED ? time : schedule.next);
        else if (asked.mode != CLOSED && time - schedule.next > nanoseconds(asked.timeout))
            seen.errors[UNSENT]++;
        else
            return;
        plan_next();
    }
}

static void time_out(void) {
    int64_t latest = now() - nanoseconds(asked.timeout);
    while (busy.after != &busy && busy.after->intended < latest)
        fail(busy.after, TIMEOUT);
}

/* Look for stamps in what passes: whole ones, wherever pieces end. */
static void take_body(void *owner, const char *bytes, size_t length) {
    struct connection *connection = owner;
    for (const char *at = bytes, *end = bytes + length; at < end; at++) {
        if (connection->digits < 0) {
            at = memchr(at, '@', (size_t)(end - at));
            if (!at)
                return;
            connection->digits = 0;
            connection->stamp = 0;
        } else if (*at < '0' || *at > '9') {
            connection->digits = *at == '@' ? 0 : -1;
            connection->stamp = 0;
        } else {
            connection->stamp = connection->stamp * 10 + (*at - '0');
            if (++connection->digits == STAMP) {
                connection->digits = -1;
                connection->events++;
                seen.events++;
                if (connection->stamp >= counts_from && connection->stamp < ends)
                    record(&seen.event_lateness, read_at - connection->stamp);
            }
        }
    }
}

static void read_some(struct connection *connection) {
    static char piece[PIECE];
    ssize_t length = recv(connection->fd, piece, sizeof piece, 0);
    if (length < 0 && errno == EAGAIN)
        return;
    read_at = now();
    if (length == 0 && connection->busy && connection->answer.part == UNTIL_END)
        complete(connection);
    else if (length <= 0 || !connection->busy)
        lose(connection);
    else {
        if (!connection->begun && connection->counted)
            record(&seen.first_byte, read_at - connection->intended);
        connection->begun = true;
        read_message(&connection->answer, piece, (size_t)length, take_body, connection);
        if (connection->answer.part == BROKEN)
            fail(connection, MALFORMED);
        else if (connection->answer.part == WHOLE)
            complete(connection);
    }
}

static void run(void) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch(epoll, EPOLL_CTL_ADD, timer, EPOLLIN, NULL);
    schedule.next = began = now();
    counts_from = began + nanoseconds(asked.warmup);
    ends = counts_from + nanoseconds(asked.seconds);
    for (begin_due(); !none_left(now()) || busy.after != &busy; begin_due()) {
        struct epoll_event events[EVENTS];
        set_timer(timer, asked.mode != CLOSED && idle_count && !none_left(0) ? schedule.next : 0);
        int ready = epoll_wait(epoll, events, EVENTS, TICK);
        for (int number = 0; number < ready; number++) {
            struct connection *connection = events[number].data.ptr;
            if (!connection)
                continue; /* the timer: what is due is begun below */
            if (events[number].events & EPOLLOUT && connection->busy)
                send_rest(connection);
            if (events[number].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && connection->fd >= 0)
                read_some(connection);
        }
        time_out();
    }
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    allow_descriptors((rlim_t)asked.connections + 64);
    connections = allocate((size_t)asked.connections, sizeof *connections);
    idle = allocate((size_t)asked.connections, sizeof *idle);
    for (idle_count = 0; idle_count < asked.connections; idle_count++) {
        idle[idle_count] = &connections[idle_count];
        idle[idle_count]->fd = -1;
    }
    epoll = epoll_create1(EPOLL_CLOEXEC);
    run();
    print_seen(asked.seconds);
    return 0;
}
