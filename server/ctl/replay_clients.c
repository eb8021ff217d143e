/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/replay_clients.h"

#include <poll.h>
#include <stdlib.h>

#include "ctl/output.h"

/* More often than the broker looks, and often enough that notifications do not pile up there. */
#define TEND_EVERY_MS 1000

void replay_clients_init(struct replay_clients *clients, const struct options *options,
                         const struct connection_config *config) {
        *clients = (struct replay_clients){ .options = options,
                                            .config = *config,
                                            .tended_ms = monotonic_ms() };
}

static struct replay_client *client_free(struct replay_client *client) {
        if (!client)
                return NULL;

        connection_free(client->connection);
        buf_deinit(&client->id);
        buf_deinit(&client->filter);
        free(client);
        return NULL;
}

void replay_clients_deinit(struct replay_clients *clients) {
        for (size_t i = 0; i < REPLAY_CLIENTS_MAX; i++)
                clients->clients[i] = client_free(clients->clients[i]);
}

void replay_client_topic(const struct replay_client *client, const char *last, struct buf *topic) {
        buf_reset(topic);
        buf_append_string(topic, "clients/");
        buf_append_string(topic, (const char *)client->id.data);
        buf_append_string(topic, "/statestorectl/replay/");
        buf_append_string(topic, last);
        buf_append(topic, "", 1);
}

/* The first one is who we are. */
static struct replay_client *client_new(struct replay_clients *clients, size_t number) {
        struct replay_client *client = calloc(1, sizeof(*client));
        struct connection_config config = clients->config;

        if (!client)
                return NULL;
        buf_append_string(&client->id, clients->options->client_id);
        if (number > 0) {
                buf_append_string(&client->id, "-");
                buf_append_uint(&client->id, number);
        }
        buf_append(&client->id, "", 1);
        if (buf_failed(&client->id))
                return client_free(client);
        replay_client_topic(client, "+", &client->filter);
        if (buf_failed(&client->filter))
                return client_free(client);

        client->is_disconnected = true;
        client->topics[0] = (const char *)client->filter.data;
        config.client_id = (const char *)client->id.data;
        config.topics = client->topics;
        return connection_new(&client->connection, &config) < 0 ? client_free(client) : client;
}

struct replay_client *replay_clients_find(struct replay_clients *clients, size_t number) {
        struct replay_client *client;

        if (number >= REPLAY_CLIENTS_MAX)
                number = REPLAY_CLIENTS_MAX - 1;
        if (!clients->clients[number])
                clients->clients[number] = client_new(clients, number);
        client = clients->clients[number];
        if (!client) {
                complain("out of memory");
                return NULL;
        }

        if (client->is_disconnected && connection_open(client->connection) != CONNECTION_OK) {
                complain("%s", connection_problem(client->connection));
                return NULL;
        }
        client->is_disconnected = false;
        return client;
}

/* Whoever is lost meanwhile comes back when it is needed, as clients do. */
static void tend_others(struct replay_clients *clients, const struct replay_client *client) {
        for (size_t i = 0; i < REPLAY_CLIENTS_MAX; i++) {
                struct replay_client *other = clients->clients[i];

                if (other && other != client && !other->is_disconnected)
                        other->is_disconnected = connection_tend(other->connection) == CONNECTION_FAILED;
        }
        clients->tended_ms = monotonic_ms();
}

static void tend_others_in_time(struct replay_clients *clients, const struct replay_client *client) {
        if (monotonic_ms() - clients->tended_ms >= TEND_EVERY_MS)
                tend_others(clients, client);
}

static int64_t slice_of(int64_t until_ms) {
        int64_t remaining_ms = until_ms - monotonic_ms();

        return remaining_ms < 0 ? 0 : remaining_ms < TEND_EVERY_MS ? remaining_ms : TEND_EVERY_MS;
}

void replay_clients_pause(struct replay_clients *clients, int64_t duration_ms) {
        int64_t until_ms = monotonic_ms() + duration_ms;

        while (monotonic_ms() < until_ms) {
                poll(NULL, 0, (int)slice_of(until_ms));
                tend_others_in_time(clients, NULL);
        }
}

enum connection_result replay_clients_wait(struct replay_clients *clients, struct replay_client *client,
                                           const bool *done, int64_t duration_ms) {
        int64_t until_ms = monotonic_ms() + duration_ms;
        enum connection_result result;

        do {
                tend_others_in_time(clients, client);
                result = connection_wait(client->connection, done, slice_of(until_ms));
        } while (result == CONNECTION_TIME_OVER && monotonic_ms() < until_ms);

        client->is_disconnected = result == CONNECTION_FAILED;
        return result;
}
