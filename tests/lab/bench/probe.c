/* Lets tests reach what the programs of `lab/load` share: percentiles of numbers, and messages in pieces.
 *
 *     probe percentiles PART...       of the numbers on standard input
 *     probe request|answer PIECE      the message on standard input, in pieces of so many bytes */

#include "histogram.h"
#include "message.h"

#include <stdio.h>

static struct histogram histogram;
static char input[1 << 20], body[1 << 20];
static size_t body_length;

static void take_body(void *owner, const char *bytes, size_t length) {
    (void)owner;
    memcpy(body + body_length, bytes, length);
    body_length += length;
}

int main(int argc, char **argv) {
    size_t length = fread(input, 1, sizeof input - 1, stdin);
    if (strcmp(argv[1], "percentiles") == 0) {
        for (char *at = strtok(input, " "); at; at = strtok(NULL, " "))
            record(&histogram, strtoll(at, NULL, 10));
        for (int part = 2; part < argc; part++)
            printf("%lld ", (long long)percentile(&histogram, strtod(argv[part], NULL)));
        return 0;
    }
    struct message message;
    await_message(&message, strcmp(argv[1], "request") == 0);
    size_t size = (size_t)atoi(argv[2]), at = 0;
    while (at < length && message.part != WHOLE && message.part != BROKEN) {
        size_t rest = length - at;
        char *piece = malloc(rest < size ? rest : size); /* of its own, so that no byte beyond it is read unseen */
        memcpy(piece, input + at, rest < size ? rest : size);
        at += read_message(&message, piece, rest < size ? rest : size, take_body, NULL);
        free(piece);
    }
    printf("{\"part\":\"%s\",\"status\":%d,\"target\":\"%s\",\"closes\":%d,\"taken\":%zu,\"body\":\"",
           message.part == WHOLE      ? "whole"
           : message.part == BROKEN   ? "broken"
           : message.part == UNTIL_END ? "until end"
                                       : "unfinished",
           message.status, message.target, message.closes, at);
    for (size_t byte = 0; byte < body_length; byte++)
        printf("%02x", (unsigned char)body[byte]);
    printf("\"}\n");
    return 0;
}
