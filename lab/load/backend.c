/* An endpoint that costs next to nothing, so that what stands in front of it is what is measured.
 *
 * A prompt says what is wanted, because a prompt is what every gateway hands on unchanged. `events=N rate=R`: a stream of N
 * events, R of them in a second, each with the time at which it was sent, as `@` and 19 digits of nanoseconds. Anything
 * else: a whole answer of about 600 bytes. `hold_ms=T`: nothing at all for so long before. GET /v1/models lists one
 * model, GET /counts what was asked and answered so far, and any other GET says that all is well.
 *
 *     backend [--port PORT] */

#include <getopt.h>
#include <signal.h>

#include "message.h"
#include "sockets.h"

#define PROMPT 2048     /* of a body, where what is wanted has to be said */
#define MOST_KEPT 65536 /* of what a peer does not take */
#define PIECE 65536
#define EVENTS 256
#define MOST_CONNECTIONS 65536

static const char ANSWER[] =
    "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"sim\",\"choices\":[{\"index\":0,"
    "\"message\":{\"role\":\"assistant\",\"content\":\"fair fair fair fair fair fair fair fair fair fair fair fair fair "
    "fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair "
    "fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair fair "
    "fair fair\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":250,\"completion_tokens\":60,"
    "\"total_tokens\":310}}";
static const char MODELS[] =
    "{\"object\":\"list\",\"data\":[{\"id\":\"sim\",\"object\":\"model\",\"created\":1700000000,\"owned_by\":\"bench\"}]}";
static const char STREAM_HEAD[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
                                  "transfer-encoding: chunked\r\n\r\n";
#define CHUNK_OF(rest)                                                                                                 \
    "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"sim\"," rest "\n\n"
static const char EVENT[] = CHUNK_OF(
    "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"@%019lld \"},\"finish_reason\":null}]}");
static const char LAST_EVENTS[] =
    CHUNK_OF("\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}") "data: [DONE]\n\n";

struct connection {
    int fd;
    struct message request;
    char prompt[PROMPT + 1];
    size_t prompt_length;
    bool answering, streaming;
    int64_t due, interval; /* when something is to be sent next */
    uint64_t events;       /* still to be sent */
    int place;             /* among those that are due, -1 if it is not */
    char *kept;            /* what the peer has not taken yet */
    size_t kept_length;
};

static struct {
    uint64_t requests, answered, streams, events, left, body_bytes, now, most;
} counts;

static int epoll;
static struct connection *connections[MOST_CONNECTIONS]; /* by descriptor */

/* Those for which something is due, as a heap: the earliest first. */
static struct connection **heap;
static int due_count, heap_room;

static void put(int place, struct connection *connection) {
    heap[place] = connection;
    connection->place = place;
}

static void move(int place, struct connection *connection) {
    while (place && connection->due < heap[(place - 1) / 2]->due) {
        put(place, heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (int child; (child = 2 * place + 1) < due_count; place = child) {
        if (child + 1 < due_count && heap[child + 1]->due < heap[child]->due)
            child++;
        if (connection->due <= heap[child]->due)
            break;
        put(place, heap[child]);
    }
    put(place, connection);
}

static void be_due(struct connection *connection, int64_t at) {
    connection->due = at;
    if (connection->place < 0) {
        if (due_count == heap_room && !(heap = realloc(heap, sizeof *heap * (size_t)(heap_room = 2 * heap_room + 64))))
            give_up("no memory for %d connections", heap_room);
        connection->place = due_count++;
        heap[connection->place] = connection;
    }
    move(connection->place, connection);
}

static void be_due_no_more(struct connection *connection) {
    if (connection->place < 0)
        return;
    int place = connection->place;
    struct connection *last = heap[--due_count];
    connection->place = -1;
    if (last != connection)
        move(place, last);
}

static void close_connection(struct connection *connection) {
    if (connection->answering) {
        counts.left++;
        counts.now--;
    }
    be_due_no_more(connection);
    connections[connection->fd] = NULL;
    close(connection->fd);
    free(connection->kept);
    free(connection);
}

/* Send, and keep what the peer does not take; false if there is no peer, or one that takes nothing. */
static bool send_bytes(struct connection *connection, const char *bytes, size_t length) {
    size_t sent = 0;
    if (!connection->kept_length) {
        ssize_t taken = send(connection->fd, bytes, length, MSG_NOSIGNAL);
        if (taken < 0 && errno != EAGAIN)
            return false;
        sent = taken < 0 ? 0 : (size_t)taken;
    }
    if (sent == length)
        return true;
    size_t rest = length - sent;
    if (connection->kept_length + rest > MOST_KEPT)
        return false;
    if (!connection->kept)
        connection->kept = allocate(1, MOST_KEPT);
    if (!connection->kept_length)
        watch(epoll, EPOLL_CTL_MOD, connection->fd, EPOLLIN | EPOLLOUT, connection);
    memcpy(connection->kept + connection->kept_length, bytes + sent, rest);
    connection->kept_length += rest;
    return true;
}

static bool send_kept(struct connection *connection) {
    ssize_t taken = send(connection->fd, connection->kept, connection->kept_length, MSG_NOSIGNAL);
    if (taken < 0)
        return errno == EAGAIN;
    connection->kept_length -= (size_t)taken;
    memmove(connection->kept, connection->kept + taken, connection->kept_length);
    if (!connection->kept_length)
        watch(epoll, EPOLL_CTL_MOD, connection->fd, EPOLLIN, connection);
    return true;
}

static bool send_answer(struct connection *connection, const char *body) {
    char bytes[PIECE];
    int length = snprintf(bytes, sizeof bytes,
                          "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s",
                          strlen(body), body);
    return send_bytes(connection, bytes, (size_t)length);
}

static bool send_chunk(struct connection *connection, const char *data) {
    char bytes[1024];
    int length = snprintf(bytes, sizeof bytes, "%zx\r\n%s\r\n", strlen(data), data);
    return send_bytes(connection, bytes, (size_t)length);
}

static bool send_event(struct connection *connection) {
    char event[512];
    counts.events++;
    connection->events--;
    snprintf(event, sizeof event, EVENT, (long long)now());
    return send_chunk(connection, event);
}

static bool await_request(struct connection *connection) {
    connection->answering = false;
    counts.answered++;
    counts.now--;
    await_message(&connection->request, true);
    connection->prompt_length = 0;
    return true;
}

/* Do what is due: send an answer that was held, or the next event of a stream. */
static bool go_on(struct connection *connection) {
    if (!connection->interval)
        return send_answer(connection, ANSWER) && await_request(connection);
    if (!connection->streaming) {
        connection->streaming = true;
        counts.streams++;
        if (!send_bytes(connection, STREAM_HEAD, sizeof STREAM_HEAD - 1))
            return false;
    }
    if (connection->events) {
        be_due(connection, connection->due + connection->interval);
        return send_event(connection);
    }
    return send_chunk(connection, LAST_EVENTS) && send_bytes(connection, "0\r\n\r\n", 5) && await_request(connection);
}

static bool send_counts(struct connection *connection) {
    char body[512];
    snprintf(body, sizeof body,
             "{\"requests\":%llu,\"answered\":%llu,\"streams\":%llu,\"events\":%llu,\"left\":%llu,\"body_bytes\":%llu,"
             "\"now\":%llu,\"most\":%llu}",
             (unsigned long long)counts.requests, (unsigned long long)counts.answered,
             (unsigned long long)counts.streams, (unsigned long long)counts.events, (unsigned long long)counts.left,
             (unsigned long long)counts.body_bytes, (unsigned long long)counts.now, (unsigned long long)counts.most);
    await_message(&connection->request, true);
    return send_answer(connection, body);
}

static uint64_t wanted(const char *prompt, const char *name) {
    const char *found = strstr(prompt, name);
    return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

static bool answer(struct connection *connection) {
    const char *target = connection->request.target, *prompt = connection->prompt;
    if (strcmp(target, "/counts") == 0)
        return send_counts(connection);
    if (!connection->request.sized && !connection->request.chunked) {
        const char *body = strcmp(target, "/v1/models") == 0 ? MODELS : "{}";
        await_message(&connection->request, true);
        return send_answer(connection, body);
    }
    connection->prompt[connection->prompt_length] = 0;
    counts.requests++;
    if (++counts.now > counts.most)
        counts.most = counts.now;
    uint64_t rate = wanted(prompt, "rate="), hold = wanted(prompt, "hold_ms=");
    connection->answering = true;
    connection->streaming = false;
    connection->events = wanted(prompt, "events=");
    connection->interval = connection->events ? NANOSECONDS / (int64_t)(rate ? rate : 1) : 0;
    if (hold) {
        be_due(connection, now() + (int64_t)hold * (NANOSECONDS / 1000));
        return true;
    }
    connection->due = now();
    return go_on(connection);
}

static void take_body(void *owner, const char *bytes, size_t length) {
    struct connection *connection = owner;
    size_t room = PROMPT - connection->prompt_length, taken = length < room ? length : room;
    memcpy(connection->prompt + connection->prompt_length, bytes, taken);
    connection->prompt_length += taken;
    counts.body_bytes += length;
}

/* Read what has come; false once the peer has left, or talks what is no HTTP. */
static bool read_some(struct connection *connection) {
    static char piece[PIECE];
    ssize_t length = recv(connection->fd, piece, sizeof piece, 0);
    if (length <= 0)
        return length < 0 && errno == EAGAIN;
    for (size_t at = 0; at < (size_t)length;) {
        if (connection->answering)
            return false; /* nobody here sends a request before the last one was answered */
        at += read_message(&connection->request, piece + at, (size_t)length - at, take_body, connection);
        if (connection->request.part == BROKEN)
            return false;
        if (connection->request.part == WHOLE && !answer(connection))
            return false;
    }
    return true;
}

static void accept_all(int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        if (fd >= MOST_CONNECTIONS) {
            close(fd);
            continue;
        }
        struct connection *connection = connections[fd] = allocate(1, sizeof *connection);
        connection->fd = fd;
        connection->place = -1;
        await_message(&connection->request, true);
        without_delay(fd);
        watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, connection);
    }
}

static int listen_on(int port) {
    int listener = tcp_socket(), yes = 1;
    struct sockaddr_in address = loopback(port);
    socklen_t size = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096))
        give_up("port %d of 127.0.0.1: %s", port, strerror(errno));
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static volatile sig_atomic_t ended;

static void end(int number) {
    ended = number;
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"port", required_argument, NULL, 'p'}, {0}};
    int port = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option != 'p')
            return 2;
        port = atoi(optarg);
    }
    struct sigaction on_end = {.sa_handler = end};
    sigaction(SIGTERM, &on_end, NULL);
    sigaction(SIGINT, &on_end, NULL);
    allow_descriptors(64);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_on(port), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN, &listener);
    watch(epoll, EPOLL_CTL_ADD, timer, EPOLLIN, &timer);
    while (!ended) {
        struct epoll_event events[EVENTS];
        set_timer(timer, due_count ? heap[0]->due : 0);
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        for (int number = 0; number < ready; number++) {
            struct connection *connection = events[number].data.ptr;
            uint32_t what = events[number].events;
            if (events[number].data.ptr == &listener)
                accept_all(listener);
            else if (events[number].data.ptr == &timer)
                set_timer(timer, 0); /* what was due is done below */
            else if (((what & EPOLLOUT) && connection->kept_length && !send_kept(connection)) ||
                     ((what & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !read_some(connection)))
                close_connection(connection);
        }
        for (int64_t time = now(); due_count && heap[0]->due <= time;) {
            struct connection *connection = heap[0];
            if (!connection->interval || !connection->events)
                be_due_no_more(connection);
            if (!go_on(connection))
                close_connection(connection);
        }
    }
    return 0;
}
