/* SPDX-License-Identifier: Apache-2.0 */

#include "core/departure.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/assert.h"

/* Out of memory storage is not told, and keeps a registration too many until its client leaves once more. */
void departure_end(struct engine *engine, struct registration *registration, bool is_final,
                   struct effects *effects) {
        if (effects_reserve_row(effects) == 0)
                effects_row(effects,
                            (struct row){ .type = ROW_REGISTRATION,
                                          .registration = { registration_ref(registration),
                                                            .is_added = false, .is_final = is_final } });
        watch_remove(&engine->watch, registration);
}

static void end_all_of_client(struct engine *engine, struct registration *registration,
                              struct effects *effects) {
        while (registration) {
                struct registration *next = registration->next_of_client;

                departure_end(engine, registration, true, effects);
                registration = next;
        }
}

void departure_end_client(struct engine *engine, struct slice client, struct effects *effects) {
        end_all_of_client(engine, watch_of_client(&engine->watch, client), effects);
}

/* Ends all but those of the connections that the event names. */
static void end_others(struct engine *engine, const struct event *event, struct effects *effects) {
        struct table_cursor cursor = { 0 };
        struct registration *registration;

        while ((registration = watch_each(&engine->watch, &cursor)))
                if (event->n_connections == 0 ||
                    !bsearch(&registration->connection, event->connections, event->n_connections,
                             sizeof(*event->connections), compare_uint64))
                        departure_end(engine, registration, true, effects);
}

void departure_step(struct engine *engine, const struct event *event, struct effects *effects) {
        engine->n_departures++;

        switch (event->type) {
        case EVENT_CLIENT_LEFT:
                departure_end_client(engine, event->client, effects);
                break;
        case EVENT_CONNECTION_LEFT:
                end_all_of_client(engine, watch_of_connection(&engine->watch, event->connection), effects);
                break;
        case EVENT_ALL_LEFT: /* names none */
        case EVENT_CONNECTIONS_KEPT:
                end_others(engine, event, effects);
                break;
        case EVENT_NOT_DELIVERED:
                if (event->registration->key)
                        departure_end(engine, event->registration, true, effects);
                break;
        default:
                ASSERT(!"a departure");
        }
}
