/* What a load is asked to be: the options of the command, and the requests that it will send, made before it begins. */

#ifndef FAIRPOOL_ASKED_H
#define FAIRPOOL_ASKED_H

#include <getopt.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "sockets.h"

struct bytes {
    char *start;
    size_t length;
};

static struct {
    enum { CLOSED, OPEN, STREAMS } mode;
    const char *path;
    int port, connections;
    double rate, seconds, warmup, ramp, timeout, large_share;
    uint64_t seed, events, keys;
    bool churn;
    struct bytes bodies[2]; /* the small and the large one */
    struct bytes *heads[2]; /* of requests with each, one for each key */
} asked = {.path = "/v1/chat/completions", .connections = 1, .seconds = 1, .timeout = 30, .seed = 1, .rate = 1};

static const char usage[] =
    "usage: load --port PORT [closed|open|streams] [OPTION]...\n"
    "  --connections N   closed, streams: so many; open: at most so many (1)\n"
    "  --rate R          open: requests in a second\n"
    "  --seconds S       for so long (1), after\n"
    "  --warmup S        that is not counted, but for errors (0)\n"
    "  --ramp S          closed, streams: all begin within so long, one after another (0)\n"
    "  --events N        streams: each has to have so many\n"
    "  --timeout S       what takes longer is an error (30)\n"
    "  --churn           each request on a connection of its own\n"
    "  --path PATH       what is asked (/v1/chat/completions)\n"
    "  --body FILE       with this body; and instead of it\n"
    "  --large-body FILE this one, in\n"
    "  --large-share P   so many of all cases\n"
    "  --keys FILE       credentials, one a line, in turn\n"
    "  --seed N          of the moments, and of who is large (1)";

static struct bytes contents_of(const char *path) {
    FILE *file = fopen(path, "rb");
    struct stat about;
    if (!file || fstat(fileno(file), &about))
        give_up("%s: %s", path, strerror(errno));
    struct bytes found = {allocate((size_t)about.st_size + 1, 1), (size_t)about.st_size};
    if (fread(found.start, 1, found.length, file) != found.length)
        give_up("%s: it cannot be read whole", path);
    fclose(file);
    return found;
}

static struct bytes head_of(const char *key, size_t length) {
    struct bytes head = {0};
    int size = asprintf(&head.start,
                        "POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n%s%s%scontent-type: application/json\r\n"
                        "content-length: %zu\r\n%s\r\n",
                        asked.path, asked.port, *key ? "authorization: Bearer " : "", key, *key ? "\r\n" : "", length,
                        asked.churn ? "connection: close\r\n" : "");
    if (size < 0)
        give_up("no memory for the heads of requests");
    head.length = (size_t)size;
    return head;
}

/* One key a line; without a file, requests without a key. */
static void make_heads(const char *path) {
    struct bytes lines = path ? contents_of(path) : (struct bytes){allocate(1, 1), 0};
    char *rest = lines.start;
    for (char *key; (key = strsep(&rest, "\n"));) {
        if (!*key && asked.keys)
            continue;
        for (int large = 0; large < 2; large++) {
            struct bytes *heads = realloc(asked.heads[large], (asked.keys + 1) * sizeof *heads);
            if (!heads)
                give_up("no memory for %llu keys", (unsigned long long)asked.keys);
            heads[asked.keys] = head_of(key, asked.bodies[large].length);
            asked.heads[large] = heads;
        }
        asked.keys++;
    }
    free(lines.start);
}

static double number_of(const char *text) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || number < 0)
        give_up("%s is no number of 0 or more\n%s", text, usage);
    return number;
}

static void read_options(int argc, char **argv) {
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},    {"connections", 1, NULL, 'c'}, {"rate", 1, NULL, 'r'},
        {"seconds", 1, NULL, 's'}, {"warmup", 1, NULL, 'w'},      {"ramp", 1, NULL, 'm'},
        {"events", 1, NULL, 'e'},  {"timeout", 1, NULL, 't'},     {"churn", 0, NULL, 'n'},
        {"path", 1, NULL, 'u'},    {"body", 1, NULL, 'b'},        {"large-body", 1, NULL, 'l'},
        {"keys", 1, NULL, 'k'},    {"large-share", 1, NULL, 'h'}, {"seed", 1, NULL, 'd'},
        {0},
    };
    const char *keys = NULL;
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (option) {
        case 'p': asked.port = (int)number_of(optarg); break;
        case 'c': asked.connections = (int)number_of(optarg); break;
        case 'r': asked.rate = number_of(optarg); break;
        case 's': asked.seconds = number_of(optarg); break;
        case 'w': asked.warmup = number_of(optarg); break;
        case 'm': asked.ramp = number_of(optarg); break;
        case 'e': asked.events = (uint64_t)number_of(optarg); break;
        case 't': asked.timeout = number_of(optarg); break;
        case 'n': asked.churn = true; break;
        case 'u': asked.path = optarg; break;
        case 'b': asked.bodies[0] = contents_of(optarg); break;
        case 'l': asked.bodies[1] = contents_of(optarg); break;
        case 'k': keys = optarg; break;
        case 'h': asked.large_share = number_of(optarg); break;
        case 'd': asked.seed = (uint64_t)number_of(optarg); break;
        default: give_up("%s", usage);
        }
    }
    const char *mode = optind < argc ? argv[optind] : "closed";
    asked.mode = strcmp(mode, "open") == 0 ? OPEN : strcmp(mode, "streams") == 0 ? STREAMS : CLOSED;
    if (!asked.port || !asked.connections || !asked.rate || !asked.seconds ||
        (asked.mode == CLOSED && strcmp(mode, "closed") != 0))
        give_up("%s", usage);
    make_heads(keys);
}

#endif
