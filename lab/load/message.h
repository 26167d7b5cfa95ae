/* HTTP/1.1 messages as they arrive, in pieces of any size.
 *
 * Whatever the pieces, the same bytes give the same message. Nothing is kept of it but the start of a line that is not
 * whole yet; a body is handed on as it passes. */

#ifndef FAIRPOOL_MESSAGE_H
#define FAIRPOOL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE 256

enum part { FIRST_LINE, HEADERS, SIZED, UNTIL_END, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILERS, WHOLE, BROKEN };

struct message {
    enum part part;
    bool request; /* without a length a request has no body, and an answer lasts until its connection ends */
    bool sized, chunked, closes;
    int status;
    uint64_t left; /* of the body, or of the chunk */
    char target[LINE];
    char line[LINE]; /* of longer ones the end is forgotten */
    size_t held;
};

typedef void body_taker(void *owner, const char *bytes, size_t length);

static inline void await_message(struct message *message, bool request) {
    memset(message, 0, offsetof(struct message, line));
    message->request = request;
    message->held = 0;
}

static inline bool header_is(const char *line, const char *name) {
    return strncasecmp(line, name, strlen(name)) == 0;
}

static inline const char *value_of(const char *line) {
    const char *value = strchr(line, ':') + 1;
    return value + strspn(value, " \t");
}

static inline void read_first_line(struct message *message, const char *line) {
    message->part = HEADERS;
    if (message->request) {
        const char *target = strchr(line, ' '), *end = target ? strchr(target + 1, ' ') : NULL;
        if (!end)
            message->part = BROKEN;
        else
            memcpy(message->target, target + 1, (size_t)(end - target - 1));
    } else {
        message->status = strncmp(line, "HTTP/1.", 7) == 0 && strlen(line) > 9 ? atoi(line + 9) : 0;
        message->closes = strncmp(line, "HTTP/1.0", 8) == 0;
        if (message->status < 100 || message->status > 599)
            message->part = BROKEN;
    }
}

static inline void end_headers(struct message *message) {
    if (!message->request && message->status < 200)
        await_message(message, false); /* 100 Continue and its like announce the answer that follows */
    else if (message->chunked)
        message->part = CHUNK_SIZE;
    else if (message->sized)
        message->part = message->left ? SIZED : WHOLE;
    else
        message->part = message->request || message->status == 204 || message->status == 304 ? WHOLE : UNTIL_END;
}

static inline void read_header(struct message *message, const char *line) {
    if (!*line)
        end_headers(message);
    else if (header_is(line, "content-length:")) {
        message->sized = true;
        message->left = strtoull(value_of(line), NULL, 10);
    } else if (header_is(line, "transfer-encoding:"))
        message->chunked = strcasestr(line, "chunked") != NULL;
    else if (header_is(line, "connection:"))
        message->closes = strcasestr(value_of(line), "close") != NULL;
}

static inline void read_chunk_size(struct message *message, const char *line) {
    char *end;
    message->left = strtoull(line, &end, 16);
    message->part = end == line ? BROKEN : message->left ? CHUNK : TRAILERS;
}

static inline void read_line(struct message *message) {
    char *line = message->line;
    size_t length = message->held;
    if (length && line[length - 1] == '\r')
        length--;
    line[length] = 0;
    message->held = 0;
    switch (message->part) {
    case FIRST_LINE: read_first_line(message, line); break;
    case HEADERS: read_header(message, line); break;
    case CHUNK_SIZE: read_chunk_size(message, line); break;
    case CHUNK_END: message->part = *line ? BROKEN : CHUNK_SIZE; break;
    default: message->part = *line ? TRAILERS : WHOLE;
    }
}

/* Take what belongs to this message, until it is whole or broken; returns how many bytes that were. */
static inline size_t read_message(struct message *message, const char *bytes, size_t length, body_taker *take,
                                  void *owner) {
    const char *at = bytes, *end = bytes + length;
    while (at < end && message->part != WHOLE && message->part != BROKEN) {
        size_t here = (size_t)(end - at);
        if (message->part == SIZED || message->part == CHUNK || message->part == UNTIL_END) {
            if (message->part != UNTIL_END) {
                here = here < message->left ? here : (size_t)message->left;
                message->left -= here;
                if (!message->left)
                    message->part = message->part == SIZED ? WHOLE : CHUNK_END;
            }
            take(owner, at, here);
            at += here;
            continue;
        }
        const char *newline = memchr(at, '\n', here);
        size_t more = newline ? (size_t)(newline - at) : here, room = LINE - 1 - message->held;
        memcpy(message->line + message->held, at, more < room ? more : room);
        message->held += more < room ? more : room;
        at += more + (newline != NULL);
        if (newline)
            read_line(message);
    }
    return (size_t)(at - bytes);
}

#endif
