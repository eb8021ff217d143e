/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/disconnect.h"

#include <stdlib.h>

#include "base/array.h"

/*
 * If out of memory, no change is added and storage keeps the registration. A restart then restores it
 * until its client disconnects again.
 */
void disconnect_end_registration(struct engine *engine, struct registration *registration,
                                 struct effects *effects) {
        if (effects_reserve_changes(effects, 1) == 0)
                effects_add_change(effects,
                                   (struct change){ .type = CHANGE_REGISTRATION,
                                                    .registration = { registration_ref(registration),
                                                                      .is_added = false } });
        registrations_remove(&engine->registrations, registration);
}

void disconnect_continue(struct engine *engine, size_t *n_changes_left, struct effects *effects) {
        struct registrations *registrations = &engine->registrations;
        struct registration *registration, *again;

        for (; *n_changes_left > 0 && (registration = registrations_of_ended(registrations));
             (*n_changes_left)--) {
                again = engine_find_registration(engine, registration->client_id, registration->key_name);
                if (!again) {
                        disconnect_end_registration(engine, registration, effects);
                        continue;
                }
                /* The change in the storage belongs to the newer registration. */
                again->replaces_ended = true;
                registrations_remove(registrations, registration);
        }
}

/* End the client of the registration. Accepts NULL. */
static void end_client(struct engine *engine, struct registration *registration, size_t *n_changes_left,
                       struct effects *effects) {
        if (!registration)
                return;

        registrations_end_client(&engine->registrations, registration);
        disconnect_continue(engine, n_changes_left, effects);
}

static bool is_retained(const struct event *event, uint64_t connection) {
        return event->n_connections > 0 && bsearch(&connection, event->connections, event->n_connections,
                                                   sizeof(*event->connections), compare_uint64);
}

int disconnect_others(struct engine *engine, const struct event *event, struct effects *effects) {
        struct registrations *registrations = &engine->registrations;

        if (!event->is_continued) {
                registrations->connection_check = (struct registration_cursor){ 0 };
                engine->has_restored_registrations = false;
        }
        for (size_t n = 0; n < ENGINE_STEP_CHANGES_MAX; n++) {
                struct registration *registration =
                        registrations_each(registrations, &registrations->connection_check);

                if (!registration)
                        return ENGINE_STEP_DONE;
                if (!is_retained(event, registration->connection))
                        disconnect_end_registration(engine, registration, effects);
        }
        return ENGINE_STEP_UNFINISHED;
}

void disconnect_end_former(struct engine *engine, struct slice client, uint64_t connection,
                           size_t *n_changes_left, struct effects *effects) {
        struct registration *registration = registrations_of_client(&engine->registrations, client);

        /* All registrations of a client have the same connection. */
        if (registration && registration->connection != connection)
                end_client(engine, registration, n_changes_left, effects);
}

void disconnect_client(struct engine *engine, struct slice client, struct effects *effects) {
        size_t n_changes_left = ENGINE_STEP_CHANGES_MAX;

        end_client(engine, registrations_of_client(&engine->registrations, client), &n_changes_left,
                   effects);
}

void disconnect_connection(struct engine *engine, uint64_t connection, struct effects *effects) {
        size_t n_changes_left = ENGINE_STEP_CHANGES_MAX;

        end_client(engine, registrations_of_connection(&engine->registrations, connection), &n_changes_left,
                   effects);
}

void disconnect_reached(struct engine *engine, struct registration *registration) {
        if (!registration_has_ended(registration))
                registrations_set_subscribed(&engine->registrations, registration);
}

void disconnect_not_reached(struct engine *engine, const struct event *event, struct now now,
                            struct effects *effects) {
        struct registration *registration = event->registration;

        if (registration_has_ended(registration))
                return;
        if (!registration_is_subscribed(registration)) {
                registrations_set_unreachable(&engine->registrations, registration, now.mono_ns);
                return;
        }

        disconnect_end_registration(engine, registration, effects);
}

void disconnect_end_idle(struct engine *engine, struct now now, size_t *n_changes_left,
                         struct effects *effects) {
        for (; *n_changes_left > 0 && disconnect_idle_deadline(engine) <= now.mono_ns; (*n_changes_left)--)
                disconnect_end_registration(engine, registrations_longest_idle(&engine->registrations),
                                            effects);
}

int64_t disconnect_idle_deadline(const struct engine *engine) {
        int64_t deadline_ns;

        return __builtin_add_overflow(registrations_longest_idle_since(&engine->registrations),
                                      engine->config.limits.registration_timeout_ns, &deadline_ns)
                       ? INT64_MAX
                       : deadline_ns;
}
