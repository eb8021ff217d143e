/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that flood the store: together they send requests of one kind, at a constant rate or as
 * fast as the broker reads, and do not wait for replies, until the program is killed. They read and
 * acknowledge what they receive. Prints "ready" when the flood begins. The keys of the flood lie
 * directly behind the key 0 of bench_load.
 */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/time_units.h"
#include "bench/arguments.h"
#include "bench/asker.h"
#include "bench/fail.h"
#include "bench/keys.h"
#include "bench/stopwatch.h"
#include "bench/wire.h"
#include "protocol/topics.h"

#define CLIENT_NUMBER 1000000 /* of the first client */
#define N_CLIENTS_MAX 16
#define N_WATCHERS    100
#define N_MANY        20000    /* more keys than other clients set: a page of SCAN visits few of theirs */
#define LARGEST       SIZE_MAX /* replaced by --largest */
#define SHORT_KEY     (KEY_LENGTH + 10)
#define LONG_KEY      30000 /* about the longest that can be watched */
#define ADDRESS_SIZE  65000
#define AT_ONCE_MAX   100 /* outstanding requests while keys are set */
#define BURST_BYTES   65536
#define EVENT_MS      150 /* from "ready" until an event or a short flood: the victim is measured by then */
#define MS_PER_KEY    0.3 /* longest expected time of a request before an event */

/* What the plugin accepts at most in a request: 1,024 properties and 64 KiB of user properties. */
#define N_USER_PROPERTIES  1000
#define USER_PROPERTY_SIZE 50

enum special {
        WATCHED = 1,     /* N_WATCHERS clients watch the key of the requests */
        USER_PROPERTIES, /* as many as the plugin accepts */
        LONG_ADDRESS,    /* Response Topic and Correlation Data; no client receives the replies */
        AT_QOS_0,        /* gets an error */
        AT_QOS_2,        /* gets an error */
        EXPIRE_TOGETHER, /* instead of requests: the stored keys are watched, and expire at one moment */
        DISCONNECT,      /* instead of requests: a client that watches the stored keys disconnects */
};

/* 0 and NULL stand for the default. */
struct flood_kind {
        const char *name;
        const char *verb;    /* default: no requests */
        const char *pattern; /* default: a key */
        size_t n_keys;       /* of the requests; default: 1 */
        size_t key_size;     /* default: SHORT_KEY */
        size_t set_size;     /* of the value that is set; default: the request has no value */
        uint64_t n_requests; /* default: no limit */
        struct {
                size_t n;          /* default: 0 */
                size_t key_size;   /* default: SHORT_KEY */
                size_t value_size; /* default: 1 */
        } stored; /* keys that are set before the flood, evenly distributed over the keys of the requests */
        enum special special;
};

static const struct flood_kind kinds[] = {
        /*
         * A page of SCAN visits few keys: the pattern is compared with each long key in many ways,
         * and matches none.
         */
        { "scan_stars", "SCAN", .pattern = "*a*a*a*a*a*a*a*a*ab", .stored.n = N_MANY,
          .stored.key_size = 2000 },
        /* A page of SCAN visits and lists as many keys as it may. */
        { "scan_many_keys", "SCAN", .pattern = "*", .stored.n = N_MANY },
        { "get_largest", "GET", .stored.n = 1, .stored.value_size = LARGEST },
        { "get_64_kb", "GET", .stored.n = 1, .stored.value_size = 64000 },
        { "get_small", "GET", .stored.n = 1 },
        { "set_largest", "SET", .set_size = LARGEST },
        { "set_64_kb", "SET", .set_size = 64000 },
        { "set_small", "SET", .set_size = 1 },
        { "set_beside_largest", "SET", .n_keys = N_MANY, .key_size = SHORT_KEY + 1, .set_size = 1,
          .stored.n = 20, .stored.value_size = LARGEST },
        { "set_beside_long_keys", "SET", .n_keys = N_MANY, .set_size = 1, .stored.n = 200,
          .stored.key_size = LONG_KEY },
        { "keynotify", "KEYNOTIFY", .n_keys = 1000 * N_MANY },
        { "watched_small", "SET", .set_size = 1, .special = WATCHED },
        { "watched_64_kb", "SET", .set_size = 64000, .special = WATCHED },
        { "watched_largest", "SET", .set_size = LARGEST, .special = WATCHED },
        { "watched_long_key", "SET", .key_size = LONG_KEY, .set_size = 1, .special = WATCHED },
        { "del_small", "DEL", .n_keys = N_MANY, .n_requests = N_MANY, .stored.n = N_MANY },
        { "del_largest", "DEL", .n_keys = 200, .n_requests = 200, .stored.n = 200,
          .stored.value_size = LARGEST },
        { "user_properties", "GET", .special = USER_PROPERTIES },
        { "long_address", "GET", .special = LONG_ADDRESS },
        { "qos_0", "SET", .set_size = 1, .special = AT_QOS_0 },
        { "qos_2", "SET", .set_size = 1, .special = AT_QOS_2 },
        { "errors", "FLOOD", .set_size = 1 },
        { "expire_together", NULL, .stored.n = N_MANY, .special = EXPIRE_TOGETHER },
        { "disconnect", NULL, .stored.n = N_MANY, .special = DISCONNECT },
};

struct flood {
        struct flood_kind kind; /* without defaults and LARGEST */
        uint64_t per_second;    /* 0: as fast as the broker reads */
        struct asker clients[N_CLIENTS_MAX + N_WATCHERS];
        size_t n_clients, n_watchers;
        uint64_t n_requests;
        size_t n_missing; /* requests whose reply must arrive before the flood begins */
        uint64_t serial;  /* for Correlation Data */
        struct buf properties;
        uint8_t key[LONG_KEY], address[ADDRESS_SIZE], correlation[ADDRESS_SIZE];
        uint8_t *value;
};

static struct flood flood;

static void count(void *userdata, const struct message *message) {
        (void)userdata;
        if (message->correlation_data.data)
                flood.n_missing--;
}

static void ignore(void *userdata, const struct message *message) {
        (void)userdata;
        (void)message;
}

static void wait_for_replies(struct asker *asker, size_t n_missing) {
        peer_flush(&asker->peer);
        while (flood.n_missing > n_missing) {
                peer_read(&asker->peer, count, NULL);
                peer_flush(&asker->peer);
        }
}

/* The text of a key: that of key 0, a number, and letters. */
static struct slice key_of(uint64_t number, size_t size) {
        char digits[16];

        memset(flood.key, 'a', size);
        key_write(flood.key, 0);
        snprintf(digits, sizeof(digits), "-%08" PRIu64, number);
        memcpy(flood.key + KEY_LENGTH, digits, 9);
        return (struct slice){ flood.key, size };
}

static struct slice correlation(size_t size) {
        flood.serial++;
        memcpy(flood.correlation, &flood.serial, sizeof(flood.serial));
        return (struct slice){ flood.correlation, size };
}

static void ask_and_count(struct asker *asker, const struct slice *words, size_t n_words) {
        asker_ask(asker, words, n_words, correlation(sizeof(flood.serial)));
        flood.n_missing++;
        if (flood.n_missing > AT_ONCE_MAX || asker->peer.out.length > BURST_BYTES)
                wait_for_replies(asker, AT_ONCE_MAX / 2);
}

static void watch(struct asker *asker, struct slice key) {
        ask_and_count(asker, (struct slice[]){ SLICE_LITERAL("KEYNOTIFY"), key }, 2);
}

/* Set a key. expires_ns: its deadline; 0: none. */
static void set(struct asker *asker, struct slice key, size_t value_size, int64_t expires_ns) {
        char text[24];
        struct slice words[5] = {
                SLICE_LITERAL("SET"), key, { flood.value, value_size }, SLICE_LITERAL("PX")
        };

        snprintf(text, sizeof(text), "%" PRId64, (expires_ns - stopwatch_ns()) / NS_PER_MS);
        words[4] = slice_from_string(text);
        ask_and_count(asker, words, expires_ns ? 5 : 3);
}

/*
 * Set and watch the keys that the flood needs. Returns when the flood or its event begins: later
 * than "ready" if it is short.
 */
static int64_t prepare(void) {
        const struct flood_kind *kind = &flood.kind;
        size_t step =
                kind->n_keys > kind->stored.n && kind->stored.n > 0 ? kind->n_keys / kind->stored.n : 1;
        bool is_event = kind->special == EXPIRE_TOGETHER || kind->special == DISCONNECT;
        int64_t event_ns = stopwatch_ns() + (int64_t)(2 * MS_PER_KEY * (double)kind->stored.n) * NS_PER_MS;
        struct asker *asker = &flood.clients[0];

        for (size_t i = 0; i < kind->stored.n && is_event; i++)
                watch(asker, key_of(i, kind->stored.key_size));
        for (size_t i = 0; i < kind->stored.n; i++)
                set(asker, key_of(i * step, kind->stored.key_size), kind->stored.value_size,
                    kind->special == EXPIRE_TOGETHER ? event_ns : 0);
        wait_for_replies(asker, 0);
        for (size_t i = 0; i < flood.n_watchers; i++) {
                watch(&flood.clients[flood.n_clients + i], key_of(0, kind->key_size));
                wait_for_replies(&flood.clients[flood.n_clients + i], 0);
        }
        if (is_event)
                return event_ns;
        return stopwatch_ns() + (kind->n_requests > 0 ? EVENT_MS * NS_PER_MS : 0);
}

static size_t size_or(size_t size, size_t otherwise) {
        return size > 0 ? size : otherwise;
}

/* Return the row of the table, with defaults and LARGEST replaced. */
static struct flood_kind find_kind(const char *name, size_t largest, size_t n_keys_max) {
        for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
                struct flood_kind kind = kinds[i];

                if (strcmp(kind.name, name) != 0)
                        continue;
                kind.n_keys = size_or(kind.n_keys, 1);
                kind.key_size = size_or(kind.key_size, SHORT_KEY);
                kind.stored.key_size = size_or(kind.stored.key_size, SHORT_KEY);
                kind.stored.value_size = size_or(kind.stored.value_size, 1);
                if (kind.stored.n > n_keys_max)
                        kind.stored.n = n_keys_max;
                if (kind.stored.value_size == LARGEST)
                        kind.stored.value_size = largest;
                if (kind.set_size == LARGEST)
                        kind.set_size = largest;
                return kind;
        }
        fail("--kind: no such flood: \"%s\"", name);
}

static void send_request(void) {
        const struct flood_kind *kind = &flood.kind;
        struct asker *asker = &flood.clients[flood.n_requests % flood.n_clients];
        struct slice words[] = {
                slice_from_string(kind->verb),
                kind->pattern ? slice_from_string(kind->pattern)
                              : key_of(flood.n_requests % kind->n_keys, kind->key_size),
                { flood.value, kind->set_size },
        };

        flood.n_requests++;
        asker_ask(asker, words, kind->set_size > 0 ? 3 : 2,
                  correlation(kind->special == LONG_ADDRESS ? ADDRESS_SIZE : sizeof(flood.serial)));
}

/*
 * The clients send in turn. At full speed a client sends when its socket has taken its previous
 * requests.
 */
static void send_requests(int64_t begin_ns) {
        uint64_t n_due = flood.per_second == 0
                                 ? UINT64_MAX
                                 : (uint64_t)(stopwatch_ns() - begin_ns) * flood.per_second / NS_PER_S;

        if (flood.kind.n_requests > 0 && n_due > flood.kind.n_requests)
                n_due = flood.kind.n_requests;
        while (flood.n_requests < n_due &&
               (flood.per_second > 0 ||
                flood.clients[flood.n_requests % flood.n_clients].peer.out.length < BURST_BYTES))
                send_request();
}

static void flush_and_read(void) {
        struct pollfd polls[N_CLIENTS_MAX + N_WATCHERS];
        size_t n = flood.n_clients + flood.n_watchers;

        for (size_t i = 0; i < n; i++) {
                struct peer *peer = &flood.clients[i].peer;

                if (peer->out.length > 0)
                        peer_flush_some(peer);
                polls[i] = (struct pollfd){ peer->fd, peer->out.length > 0 ? POLLIN | POLLOUT : POLLIN, 0 };
        }
        if (poll(polls, n, 1) < 0)
                fail("cannot wait: %m");
        for (size_t i = 0; i < n; i++)
                if (polls[i].revents & POLLIN)
                        peer_read(&flood.clients[i].peer, ignore, NULL);
}

static void connect_clients(uint64_t port) {
        if (flood.n_clients == 0 || flood.n_clients > N_CLIENTS_MAX)
                fail("--clients: a number from 1 to %d was expected", N_CLIENTS_MAX);
        flood.n_watchers = flood.kind.special == WATCHED ? N_WATCHERS : 0;
        for (uint32_t i = 0; i < flood.n_clients + flood.n_watchers; i++)
                asker_connect(&flood.clients[i], port, CLIENT_NUMBER + i);
}

/* What prepare() does not need: topic, QoS, address and properties of the requests. */
static void decorate_requests(struct slice topic) {
        struct slice text = { flood.address, USER_PROPERTY_SIZE };

        for (size_t i = 0; i < N_USER_PROPERTIES && flood.kind.special == USER_PROPERTIES; i++)
                wire_append_user_property(&flood.properties, SLICE_LITERAL("property"), text);
        for (size_t i = 0; i < flood.n_clients; i++) {
                struct asker *asker = &flood.clients[i];

                asker->topic = topic;
                asker->peer.properties = buf_slice(&flood.properties);
                if (flood.kind.special == LONG_ADDRESS)
                        asker->reply_address = (struct slice){ flood.address, sizeof(flood.address) };
                if (flood.kind.special == AT_QOS_0 || flood.kind.special == AT_QOS_2)
                        asker->peer.qos = flood.kind.special == AT_QOS_0 ? 0 : 2;
        }
}

static void announce(int64_t event_ns) {
        while (stopwatch_ns() < event_ns - EVENT_MS * NS_PER_MS)
                flush_and_read();
        puts("ready");
        fflush(stdout);
        while (stopwatch_ns() < event_ns)
                flush_and_read();
        if (flood.kind.special != DISCONNECT)
                return;
        close(flood.clients[0].peer.fd);
        for (;;)
                pause();
}

int main(int n_arguments, char **arguments) {
        uint64_t port = 0, n_clients = 1, largest = 1000000, n_keys_max = N_MANY;
        const char *name = "scan_stars", *topic = TOPIC_INVOKE;
        int64_t event_ns;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &port },
                               { "clients", ARGUMENT_NUMBER, &n_clients },
                               { "kind", ARGUMENT_TEXT, &name },
                               { "topic", ARGUMENT_TEXT, &topic },
                               { "per-second", ARGUMENT_NUMBER, &flood.per_second },
                               { "largest", ARGUMENT_NUMBER, &largest },
                               { "keys", ARGUMENT_NUMBER, &n_keys_max },
                               { 0 },
                       });
        flood.n_clients = n_clients;
        flood.kind = find_kind(name, largest, n_keys_max);
        flood.value = calloc(1, largest > BURST_BYTES ? largest : BURST_BYTES);
        if (!flood.value)
                fail("out of memory");
        memset(flood.address, 'a', sizeof(flood.address));
        memcpy(flood.address, "clients/", 8);

        connect_clients(port);
        event_ns = prepare();
        decorate_requests(slice_from_string(topic));
        announce(event_ns);
        for (int64_t begin_ns = stopwatch_ns(); flood.kind.verb;) {
                send_requests(begin_ns);
                flush_and_read();
        }
        for (;;)
                flush_and_read();
}
