/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/load.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/fail.h"
#include "bench/stopwatch.h"

/* Number of keys drawn in advance: enough for several seconds. */
#define N_KEYS_DRAWN (1 << 20)

#define EVENTS_AT_ONCE 256

struct load_client {
        struct load *load;
        struct asker asker;
        peer_message *received;
};

struct load_slot {
        uint64_t serial; /* of its request */
        int64_t sent_ns;
        bool is_outstanding;
        bool is_get;
};

/* The correlation data. */
struct ticket {
        uint64_t run;
        uint32_t slot;
        uint32_t serial;
};

static void ask(struct load *load, size_t slot_number) {
        struct load_client *client = &load->clients[slot_number / load->options.depth];
        struct load_slot *slot = &load->slots[slot_number];
        struct ticket ticket = { load->run, (uint32_t)slot_number, (uint32_t)++slot->serial };
        uint32_t number = key_sequence_next(&load->keys);
        struct slice words[3];
        uint8_t key[KEY_LENGTH];
        size_t n_words = 0;

        slot->is_get = random_next(&load->random) % 100 < load->options.get_percent;
        slot->is_outstanding = true;
        slot->sent_ns = stopwatch_ns();
        load->n_sent++;
        load->n_outstanding++;
        if (!slot->is_get)
                load->n_unnotified += load->options.n_watchers;

        key_write(key, number);
        words[n_words++] = slot->is_get ? SLICE_LITERAL("GET") : SLICE_LITERAL("SET");
        words[n_words++] = (struct slice){ key, KEY_LENGTH };
        if (!slot->is_get)
                words[n_words++] = (struct slice){ load->value, LOAD_VALUE_LENGTH };
        asker_ask(&client->asker, words, n_words, (struct slice){ (uint8_t *)&ticket, sizeof(ticket) });
}

static bool may_send(const struct load *load) {
        return !load->is_stopped &&
               (load->options.n_requests_max == 0 || load->n_sent < load->options.n_requests_max);
}

/* Return NULL if no outstanding request has this correlation data. */
static struct load_slot *slot_of(struct load *load, struct slice correlation) {
        struct load_slot *slot;
        struct ticket ticket;

        if (correlation.length != sizeof(ticket))
                return NULL;
        memcpy(&ticket, correlation.data, sizeof(ticket));
        if (ticket.run != load->run || ticket.slot >= load->options.n_clients * load->options.depth)
                return NULL;

        slot = &load->slots[ticket.slot];
        return slot->is_outstanding && ticket.serial == (uint32_t)slot->serial ? slot : NULL;
}

static void count(struct load *load, const struct load_slot *slot, struct slice payload) {
        if (slot->is_get && slice_starts_with(payload, SLICE_LITERAL("$-1")))
                load->n_not_found++;
        else if (slot->is_get && slice_starts_with(payload, SLICE_LITERAL("$")))
                load->n_found++;
        else if (slot->is_get || slice_starts_with(payload, SLICE_LITERAL("-")))
                load->n_errors++;
}

static void replied(void *userdata, const struct message *message) {
        struct load_client *client = userdata;
        struct load *load = client->load;
        struct load_slot *slot = slot_of(load, message->correlation_data);

        if (!slot) {
                load->n_errors++;
                return;
        }

        samples_add(&load->latencies_ns, (uint64_t)(stopwatch_ns() - slot->sent_ns));
        count(load, slot, message->payload);
        slot->is_outstanding = false;
        load->n_replies++;
        load->n_outstanding--;
        if (may_send(load))
                ask(load, (size_t)(slot - load->slots));
}

/* For a watcher. */
static void notified(void *userdata, const struct message *message) {
        struct load *load = ((struct load_client *)userdata)->load;
        bool is_reply = message->correlation_data.data;
        uint64_t *n_expected = is_reply ? &load->n_outstanding : &load->n_unnotified;

        if (*n_expected == 0 ||
            !slice_starts_with(message->payload, is_reply ? SLICE_LITERAL("+OK") : SLICE_LITERAL("*4")))
                load->n_errors++;
        else
                --*n_expected;
}

static void connect_client(struct load *load, uint32_t number) {
        struct load_client *client = &load->clients[number];
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

        client->load = load;
        client->received = number < load->options.n_clients ? replied : notified;
        asker_connect(&client->asker, load->options.port, number);
        if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, client->asker.peer.fd, &event) < 0)
                fail("cannot watch a connection: %m");
}

static void watch_keys(struct load *load, struct load_client *watcher) {
        uint8_t key[KEY_LENGTH];
        const struct slice words[] = { SLICE_LITERAL("KEYNOTIFY"), { key, KEY_LENGTH } };

        for (uint64_t number = 0; number < load->options.n_keys; number++) {
                const uint64_t ticket[] = { load->run, number };

                key_write(key, number);
                asker_ask(&watcher->asker, words, 2,
                          (struct slice){ (const uint8_t *)ticket, sizeof(ticket) });
                load->n_outstanding++;
        }
        peer_flush(&watcher->asker.peer);
}

void load_open(struct load *load, const struct load_options *options) {
        *load = (struct load){ .options = *options, .epoll = epoll_create1(EPOLL_CLOEXEC) };
        load->clients = calloc(options->n_clients + options->n_watchers, sizeof(*load->clients));
        load->slots = calloc(options->n_clients * options->depth, sizeof(*load->slots));
        if (!load->clients || !load->slots || load->epoll < 0 ||
            getrandom(&load->run, sizeof(load->run), 0) != sizeof(load->run))
                fail("cannot start: %m");

        load->random = load->run | 1;
        memset(load->value, 'v', sizeof(load->value));
        key_sequence_init(&load->keys, options->order, options->n_keys,
                          options->order == KEYS_ONCE ? options->n_keys : N_KEYS_DRAWN, load->run);

        for (uint32_t i = 0; i < options->n_clients + options->n_watchers; i++)
                connect_client(load, i);
        for (uint64_t i = 0; i < options->n_watchers; i++)
                watch_keys(load, &load->clients[options->n_clients + i]);
        load_run(load, stopwatch_ns() + LOAD_PATIENCE_NS);
        if (load->n_outstanding > 0)
                fail("a reply to KEYNOTIFY is missing");
}

void load_close(struct load *load) {
        for (size_t i = 0; i < load->options.n_clients + load->options.n_watchers; i++)
                asker_close(&load->clients[i].asker);
        close(load->epoll);
        key_sequence_deinit(&load->keys);
        samples_deinit(&load->latencies_ns);
        free(load->clients);
        free(load->slots);
}

void load_start(struct load *load) {
        load->is_stopped = false;
        for (size_t i = 0; i < load->options.n_clients * load->options.depth && may_send(load); i++)
                ask(load, i);
        for (size_t i = 0; i < load->options.n_clients; i++)
                peer_flush(&load->clients[i].asker.peer);
}

void load_run(struct load *load, int64_t until_ns) {
        struct epoll_event events[EVENTS_AT_ONCE];
        int64_t remaining_ns;

        while (load->n_outstanding + load->n_unnotified > 0 &&
               (remaining_ns = until_ns - stopwatch_ns()) > 0) {
                int n = epoll_wait(load->epoll, events, EVENTS_AT_ONCE,
                                   remaining_ns > NS_PER_S ? 1000 : (int)(remaining_ns / NS_PER_MS) + 1);

                for (int i = 0; i < n; i++) {
                        struct load_client *client = events[i].data.ptr;

                        peer_read(&client->asker.peer, client->received, client);
                        peer_flush(&client->asker.peer);
                }
        }
}

void load_stop(struct load *load) {
        load->is_stopped = true;
}
