/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/load.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/fail.h"
#include "bench/stopwatch.h"

/* How many keys are drawn before the start: more than are asked for in some seconds. */
#define N_KEYS_DRAWN (1 << 20)

#define EVENTS_AT_ONCE 256

struct load_client {
        struct load *load;
        struct asker asker;
};

struct load_place {
        uint64_t serial; /* of its request */
        int64_t sent_ns;
        bool is_outstanding;
        bool is_get;
};

/* The correlation data. */
struct ticket {
        uint64_t run;
        uint32_t place;
        uint32_t serial;
};

static void ask(struct load *load, size_t place_number) {
        struct load_client *client = &load->clients[place_number / load->options.depth];
        struct load_place *place = &load->places[place_number];
        struct ticket ticket = { load->run, (uint32_t)place_number, (uint32_t)++place->serial };
        uint32_t number = key_sequence_next(&load->keys);
        struct slice words[3];
        uint8_t key[KEY_LENGTH];
        size_t n_words = 0;

        place->is_get = random_next(&load->random) % 100 < load->options.get_percent;
        place->is_outstanding = true;
        place->sent_ns = stopwatch_ns();
        load->n_sent++;
        load->n_outstanding++;

        key_write(key, number);
        words[n_words++] = place->is_get ? SLICE_LITERAL("GET") : SLICE_LITERAL("SET");
        words[n_words++] = (struct slice){ key, KEY_LENGTH };
        if (!place->is_get)
                words[n_words++] = (struct slice){ load->value, LOAD_VALUE_LENGTH };
        asker_ask(&client->asker, words, n_words, (struct slice){ (uint8_t *)&ticket, sizeof(ticket) });
}

static bool may_send(const struct load *load) {
        return !load->is_stopped &&
               (load->options.n_requests_max == 0 || load->n_sent < load->options.n_requests_max);
}

/* NULL: nothing that is on its way has this correlation data. */
static struct load_place *place_of(struct load *load, struct slice correlation) {
        struct load_place *place;
        struct ticket ticket;

        if (correlation.length != sizeof(ticket))
                return NULL;
        memcpy(&ticket, correlation.data, sizeof(ticket));
        if (ticket.run != load->run || ticket.place >= load->options.n_clients * load->options.depth)
                return NULL;

        place = &load->places[ticket.place];
        return place->is_outstanding && ticket.serial == (uint32_t)place->serial ? place : NULL;
}

static void count(struct load *load, const struct load_place *place, struct slice payload) {
        if (place->is_get && slice_starts_with(payload, SLICE_LITERAL("$-1")))
                load->n_not_found++;
        else if (place->is_get && slice_starts_with(payload, SLICE_LITERAL("$")))
                load->n_found++;
        else if (place->is_get || slice_starts_with(payload, SLICE_LITERAL("-")))
                load->n_errors++;
}

static void answered(void *userdata, const struct message *message) {
        struct load_client *client = userdata;
        struct load *load = client->load;
        struct load_place *place = place_of(load, message->correlation_data);

        if (!place) {
                load->n_errors++;
                return;
        }

        samples_add(&load->latencies_ns, (uint64_t)(stopwatch_ns() - place->sent_ns));
        count(load, place, message->payload);
        place->is_outstanding = false;
        load->n_answered++;
        load->n_outstanding--;
        if (may_send(load))
                ask(load, (size_t)(place - load->places));
}

void load_open(struct load *load, const struct load_options *options) {
        *load = (struct load){ .options = *options, .epoll = epoll_create1(EPOLL_CLOEXEC) };
        load->clients = calloc(options->n_clients, sizeof(*load->clients));
        load->places = calloc(options->n_clients * options->depth, sizeof(*load->places));
        if (!load->clients || !load->places || load->epoll < 0 ||
            getrandom(&load->run, sizeof(load->run), 0) != sizeof(load->run))
                fail("cannot start: %m");

        load->random = load->run | 1;
        memset(load->value, 'v', sizeof(load->value));
        key_sequence_init(&load->keys, options->order, options->n_keys,
                          options->order == KEYS_ONCE ? options->n_keys : N_KEYS_DRAWN, load->run);

        for (uint32_t i = 0; i < options->n_clients; i++) {
                struct load_client *client = &load->clients[i];
                struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

                client->load = load;
                asker_connect(&client->asker, options->port, i);
                if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, client->asker.peer.fd, &event) < 0)
                        fail("cannot watch a connection: %m");
        }
}

void load_close(struct load *load) {
        for (size_t i = 0; i < load->options.n_clients; i++)
                asker_close(&load->clients[i].asker);
        close(load->epoll);
        key_sequence_deinit(&load->keys);
        samples_deinit(&load->latencies_ns);
        free(load->clients);
        free(load->places);
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

        while (load->n_outstanding > 0 && (remaining_ns = until_ns - stopwatch_ns()) > 0) {
                int n = epoll_wait(load->epoll, events, EVENTS_AT_ONCE,
                                   remaining_ns > NS_PER_S ? 1000 : (int)(remaining_ns / NS_PER_MS) + 1);

                for (int i = 0; i < n; i++) {
                        struct load_client *client = events[i].data.ptr;

                        peer_read(&client->asker.peer, answered, client);
                        peer_flush(&client->asker.peer);
                }
        }
}

void load_stop(struct load *load) {
        load->is_stopped = true;
}
