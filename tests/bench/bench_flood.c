/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client that floods: it sends requests of one kind at a constant rate and waits for no answer, until it is ended.
 * Prints "ready" when the flood begins.
 */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/arguments.h"
#include "bench/asker.h"
#include "bench/fail.h"
#include "bench/stopwatch.h"
#include "protocol/topics.h"

#define CLIENT_NUMBER 1000000
#define N_KEYS        20000 /* most of all, so that a page of SCAN sees few others */
#define KEY_SIZE      2000
#define VALUE_SIZE    100000
#define N_AT_ONCE     100 /* on their way while keys are set */

/* An answer to a request that must be answered has not been read. */
static size_t n_missing;

static void count(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
        n_missing--;
}

static void ignore(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
}

static void wait_for_answers(struct asker *asker) {
        while (n_missing > 0) {
                peer_read(&asker->peer, count, NULL);
                peer_flush(&asker->peer);
        }
}

/* Keys of one letter: a pattern of many stars is compared with them in many ways, and matches none. */
static void fill(struct asker *asker) {
        char key[KEY_SIZE + 1];

        memset(key, 'a', KEY_SIZE);
        key[KEY_SIZE] = '\0';
        for (uint32_t i = 0; i < N_KEYS; i++) {
                char number[16];

                snprintf(number, sizeof(number), "%08" PRIu32, i);
                memcpy(key, number, 8);
                asker_ask(
                        asker,
                        (struct slice[]){ SLICE_LITERAL("SET"), slice_from_string(key), SLICE_LITERAL("v") },
                        3, (struct slice){ (uint8_t *)&i, sizeof(i) });
                n_missing++;
                if (n_missing < N_AT_ONCE && i + 1 < N_KEYS)
                        continue;
                peer_flush(&asker->peer);
                wait_for_answers(asker);
        }
}

static size_t choose(const char *kind, struct slice words[3]) {
        static uint8_t value[VALUE_SIZE];

        memset(value, 'v', sizeof(value));
        if (strcmp(kind, "scan") == 0) {
                words[0] = SLICE_LITERAL("SCAN");
                words[1] = SLICE_LITERAL("*a*a*a*a*a*a*a*a*ab");
                return 2;
        }
        if (strcmp(kind, "set") == 0) {
                words[0] = SLICE_LITERAL("SET");
                words[1] = SLICE_LITERAL("flood");
                words[2] = (struct slice){ value, sizeof(value) };
                return 3;
        }
        if (strcmp(kind, "keynotify") == 0) {
                words[0] = SLICE_LITERAL("KEYNOTIFY");
                words[1] = SLICE_LITERAL("flood");
                return 2;
        }
        fail("--kind: scan, set or keynotify was expected, not \"%s\"", kind);
}

static void flood(struct asker *asker, const struct slice *words, size_t n_words, uint64_t per_second) {
        struct pollfd poll_fd = { .fd = asker->peer.fd, .events = POLLIN };
        int64_t begin_ns = stopwatch_ns();
        uint64_t n = 0;

        for (;;) {
                if (poll(&poll_fd, 1, 1) < 0)
                        fail("cannot wait: %m");
                if (poll_fd.revents & POLLIN)
                        peer_read(&asker->peer, ignore, NULL);
                while (n < (uint64_t)(stopwatch_ns() - begin_ns) * per_second / NS_PER_S) {
                        n++;
                        asker_ask(asker, words, n_words, (struct slice){ (uint8_t *)&n, sizeof(n) });
                }
                peer_flush(&asker->peer);
        }
}

int main(int n_arguments, char **arguments) {
        const char *kind = "scan", *topic = TOPIC_INVOKE;
        struct slice words[3];
        struct asker asker;
        uint64_t port = 0, per_second = 1000;
        size_t n_words;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &port },
                               { "kind", ARGUMENT_TEXT, &kind },
                               { "topic", ARGUMENT_TEXT, &topic },
                               { "per-second", ARGUMENT_NUMBER, &per_second },
                               { 0 },
                       });
        n_words = choose(kind, words);
        asker_connect(&asker, port, CLIENT_NUMBER);
        fill(&asker);
        asker.topic = slice_from_string(topic);
        puts("ready");
        fflush(stdout);
        flood(&asker, words, n_words, per_second);
}
