/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/disconnect.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"

/* If out of memory, no row is added: storage keeps the ended registration until its client disconnects again. */
void disconnect_end(struct engine *engine, struct registration *registration, bool is_final,
                    struct effects *effects) {
        if (effects_reserve_row(effects) == 0)
                effects_row(effects,
                            (struct row){ .type = ROW_REGISTRATION,
                                          .registration = { registration_ref(registration),
                                                            .is_added = false, .is_final = is_final } });
        effects->n_stopped += !is_final;
        watch_remove(&engine->watch, registration);
}

static void end_all_of_client(struct engine *engine, struct registration *registration,
                              struct effects *effects) {
        while (registration) {
                struct registration *next = registration->next_of_client;

                disconnect_end(engine, registration, true, effects);
                registration = next;
        }
}

static bool is_retained(const struct event *event, uint64_t connection) {
        return event->n_connections > 0 && bsearch(&connection, event->connections, event->n_connections,
                                                   sizeof(*event->connections), compare_uint64);
}

/* End all registrations except those of the event's connections. */
static void end_others(struct engine *engine, const struct event *event, struct effects *effects) {
        struct watch_cursor cursor = { 0 };
        struct registration *registration;

        while ((registration = watch_each(&engine->watch, &cursor)))
                if (!is_retained(event, registration->connection)) {
                        disconnect_end(engine, registration, true, effects);
                        engine->unlisted_at = engine->n_disconnects;
                }
        engine->has_former_connections = false;
}

static bool has_disconnected(const struct registration *registration, const struct event *event) {
        switch (event->type) {
        case EVENT_CLIENT_DISCONNECTED:
                return registration_is_of(registration, event->client);
        case EVENT_CONNECTION_CLOSED:
                return registration->connection == event->connection;
        case EVENT_NOT_DELIVERED:
                return strcmp(registration->topic, event->registration->topic) == 0;
        default:
                return !is_retained(event, registration->connection);
        }
}

/* n_stopped skips the search in the usual case: most batches stop no registration. */
struct row *disconnect_next_stopped(struct effects *effects, size_t *at) {
        while (effects->n_stopped > 0 && *at < effects->n_rows) {
                struct row *row = &effects->rows[(*at)++];

                if (row->type == ROW_REGISTRATION && !row->registration.is_added &&
                    !row->registration.is_final)
                        return row;
        }
        return NULL;
}

/* Mark registrations that this batch stopped as final, too: an undo must not restore a registration that the event ends. */
static void end_stopped(const struct event *event, struct effects *effects) {
        struct row *row;
        size_t at = 0;

        while ((row = disconnect_next_stopped(effects, &at)))
                row->registration.is_final = has_disconnected(row->registration.registration, event);
}

void disconnect_end_former(struct engine *engine, struct slice client, uint64_t connection,
                           struct effects *effects) {
        struct registration *registration = watch_of_client(&engine->watch, client);
        struct row *row;
        size_t at = 0;

        while (registration && (registration->connection != connection || engine->has_former_connections)) {
                struct registration *next = registration->next_of_client;

                if (registration->connection != connection)
                        disconnect_end(engine, registration, true, effects);
                registration = next;
        }
        while ((row = disconnect_next_stopped(effects, &at)))
                row->registration.is_final = row->registration.registration->connection != connection &&
                                             registration_is_of(row->registration.registration, client);
}

void disconnect_step(struct engine *engine, const struct event *event, struct effects *effects) {
        engine->n_disconnects++;

        switch (event->type) {
        case EVENT_CLIENT_DISCONNECTED:
                end_all_of_client(engine, watch_of_client(&engine->watch, event->client), effects);
                break;
        case EVENT_CONNECTION_CLOSED:
                end_all_of_client(engine, watch_of_connection(&engine->watch, event->connection), effects);
                break;
        case EVENT_ALL_DISCONNECTED: /* its list of connections is empty */
        case EVENT_CONNECTIONS_RETAINED:
                end_others(engine, event, effects);
                break;
        case EVENT_NOT_DELIVERED:
                if (!event->registration->key)
                        return;
                disconnect_end(engine, event->registration, true, effects);
                break;
        default:
                ASSERT(!"an event that ends registrations");
        }
        end_stopped(event, effects);
}
