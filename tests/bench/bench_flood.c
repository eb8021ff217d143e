/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that flood the store: together they send requests of one kind at a constant rate, and do not wait for replies,
 * until the program is killed. Prints "ready" when the flood begins.
 */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "bench/arguments.h"
#include "bench/asker.h"
#include "bench/fail.h"
#include "bench/stopwatch.h"
#include "protocol/topics.h"

#define CLIENT_NUMBER 1000000 /* of the first client */
#define N_CLIENTS_MAX 16
#define N_KEYS        20000 /* more than other clients set, so that a page of SCAN visits few keys of theirs */
#define LONG_KEY_SIZE 2000
#define VALUE_SIZE    1000000
#define N_AT_ONCE     100 /* outstanding requests while keys are set */

/* The words of a request, and the memory that they point into. */
struct flood_request {
        struct slice words[3];
        size_t n_words;
        char key[32];
};

struct flood_kind {
        const char *name;
        size_t key_size;   /* of N_KEYS keys that are set before the flood; 0: no keys */
        size_t value_size; /* of the key "flood", set before the flood; 0: the key is not set */

        const char *verb;
        const char *argument; /* NULL: a key that differs from request to request */
        size_t set_size;      /* of the value that is set; 0: the request has no value */
};

static const struct flood_kind kinds[] = {
        /* A page of SCAN visits few keys: the pattern is compared with each long key in many ways, and matches none. */
        { "scan_stars", LONG_KEY_SIZE, 0, "SCAN", "*a*a*a*a*a*a*a*a*ab", 0 },
        /* A page of SCAN visits and lists as many keys as it may. */
        { "scan_many_keys", 9, 0, "SCAN", "*", 0 },
        { "set_1_mb", 0, 0, "SET", "flood", VALUE_SIZE },
        { "get_1_mb", 0, VALUE_SIZE, "GET", "flood", 0 },
        { "keynotify", 0, 0, "KEYNOTIFY", NULL, 0 },
};

/* Requests whose reply must arrive before the flood begins. */
static size_t n_missing;

static uint8_t value[VALUE_SIZE];

static void count(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
        n_missing--;
}

static void ignore(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
}

static void wait_for_replies(struct asker *asker) {
        peer_flush(&asker->peer);
        while (n_missing > 0) {
                peer_read(&asker->peer, count, NULL);
                peer_flush(&asker->peer);
        }
}

static void set(struct asker *asker, struct slice key, size_t value_size) {
        static uint32_t number;

        number++;
        asker_ask(asker, (struct slice[]){ SLICE_LITERAL("SET"), key, { value, value_size } }, 3,
                  (struct slice){ (uint8_t *)&number, sizeof(number) });
        if (++n_missing == N_AT_ONCE)
                wait_for_replies(asker);
}

/* Set the keys that the flood needs. The text of a key is a number, then the same letter repeated. */
static void fill(struct asker *asker, const struct flood_kind *kind) {
        char key[LONG_KEY_SIZE];

        memset(value, 'v', sizeof(value));
        memset(key, 'a', sizeof(key));
        for (uint32_t i = 0; kind->key_size > 0 && i < N_KEYS; i++) {
                char number[16];

                snprintf(number, sizeof(number), "%08" PRIu32, i);
                memcpy(key, number, 8);
                set(asker, (struct slice){ (uint8_t *)key, kind->key_size }, 1);
        }
        if (kind->value_size > 0)
                set(asker, SLICE_LITERAL("flood"), kind->value_size);
        wait_for_replies(asker);
}

static const struct flood_kind *find_kind(const char *name) {
        for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
                if (strcmp(kinds[i].name, name) == 0)
                        return &kinds[i];
        fail("--kind: no such flood: \"%s\"", name);
}

static void write_request(struct flood_request *request, const struct flood_kind *kind, uint64_t number) {
        const char *argument = kind->argument;

        if (!argument) {
                snprintf(request->key, sizeof(request->key), "flood-%" PRIu64, number);
                argument = request->key;
        }
        request->words[0] = slice_from_string(kind->verb);
        request->words[1] = slice_from_string(argument);
        request->words[2] = (struct slice){ value, kind->set_size };
        request->n_words = kind->set_size > 0 ? 3 : 2;
}

static void poll_clients(struct asker *clients, size_t n_clients) {
        struct pollfd polls[N_CLIENTS_MAX];

        for (size_t i = 0; i < n_clients; i++)
                polls[i] = (struct pollfd){ .fd = clients[i].peer.fd, .events = POLLIN };
        if (poll(polls, n_clients, 1) < 0)
                fail("cannot wait: %m");
        for (size_t i = 0; i < n_clients; i++)
                if (polls[i].revents & POLLIN)
                        peer_read(&clients[i].peer, ignore, NULL);
}

/* The clients send in turn. */
static void flood(struct asker *clients, size_t n_clients, const struct flood_kind *kind,
                  uint64_t per_second) {
        int64_t begin_ns = stopwatch_ns();
        struct flood_request request;
        uint64_t n = 0;

        for (;;) {
                poll_clients(clients, n_clients);
                while (n < (uint64_t)(stopwatch_ns() - begin_ns) * per_second / NS_PER_S) {
                        n++;
                        write_request(&request, kind, n);
                        asker_ask(&clients[n % n_clients], request.words, request.n_words,
                                  (struct slice){ (uint8_t *)&n, sizeof(n) });
                }
                for (size_t i = 0; i < n_clients; i++)
                        peer_flush(&clients[i].peer);
        }
}

int main(int n_arguments, char **arguments) {
        const char *name = "scan_stars", *topic = TOPIC_INVOKE;
        struct asker clients[N_CLIENTS_MAX];
        const struct flood_kind *kind;
        uint64_t port = 0, n_clients = 1, per_second = 1000;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &port },
                               { "clients", ARGUMENT_NUMBER, &n_clients },
                               { "kind", ARGUMENT_TEXT, &name },
                               { "topic", ARGUMENT_TEXT, &topic },
                               { "per-second", ARGUMENT_NUMBER, &per_second },
                               { 0 },
                       });
        if (n_clients == 0 || n_clients > N_CLIENTS_MAX)
                fail("--clients: a number from 1 to %d was expected", N_CLIENTS_MAX);
        kind = find_kind(name);
        for (uint32_t i = 0; i < n_clients; i++)
                asker_connect(&clients[i], port, CLIENT_NUMBER + i);
        fill(&clients[0], kind);
        for (size_t i = 0; i < n_clients; i++)
                clients[i].topic = slice_from_string(topic);
        puts("ready");
        fflush(stdout);
        flood(clients, n_clients, kind, per_second);
}
