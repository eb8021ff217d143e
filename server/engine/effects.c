/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/effects.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "engine/revocation.h"
#include "protocol/topics.h"

void reply_deinit(struct reply *reply) {
        entry_unref(reply->entry);
        scan_page_free(reply->page);
        *reply = (struct reply){ 0 };
}

void effects_reset(struct effects *effects) {
        for (size_t i = 0; i < effects->n_changes; i++) {
                const struct change *change = &effects->changes[i];

                if (change->type == CHANGE_ENTRY) {
                        entry_unref(change->entry.before);
                        entry_unref(change->entry.after);
                } else if (change->type == CHANGE_REGISTRATION) {
                        registration_unref(change->registration.registration);
                }
        }
        for (size_t i = 0; i < effects->n_watched_changes; i++)
                entry_unref(effects->watched_changes[i].entry);
        for (size_t i = 0; i < effects->n_notifications; i++)
                registration_unref(effects->notifications[i].registration);

        effects->n_changes = effects->n_keyed_changes = effects->n_forgotten = 0;
        effects->n_watched_changes = effects->n_notifications = effects->n_lost = 0;
        effects->n_bytes = 0;
        effects->n_bytes_before_step = 0;
}

void effects_deinit(struct effects *effects) {
        effects_reset(effects);
        free(effects->changes);
        free(effects->forgotten);
        free(effects->watched_changes);
        free(effects->notifications);
        *effects = (struct effects){ 0 };
}

int effects_reserve_changes(struct effects *effects, size_t n) {
        return array_reserve((void **)&effects->changes, &effects->changes_capacity, effects->n_changes + n,
                             sizeof(*effects->changes));
}

static size_t entry_bytes(const struct entry *entry) {
        return entry ? entry->hh.keylen + entry->value_length : 0;
}

static size_t registration_bytes(const struct registration *registration) {
        return topic_notify_length(registration->client_id.length, registration->key_name.length);
}

void effects_add_change(struct effects *effects, struct change change) {
        ASSERT(effects->n_changes < effects->changes_capacity);
        effects->changes[effects->n_changes++] = change;
        switch (change.type) {
        case CHANGE_ENTRY:
                effects->n_keyed_changes++;
                effects->n_bytes += entry_bytes(change.entry.before) + entry_bytes(change.entry.after);
                break;
        case CHANGE_REGISTRATION:
                effects->n_keyed_changes++;
                effects->n_bytes += registration_bytes(change.registration.registration);
                break;
        case CHANGE_EXECUTION:
                effects->n_bytes += sizeof(change.execution);
                break;
        }
}

int effects_reserve_key_change(struct effects *effects, const struct registration *watchers) {
        size_t n_watchers = 0;
        int r;

        r = effects_reserve_changes(effects, 1);
        if (r < 0 || !watchers)
                return r;

        for (; watchers; watchers = registration_next_of_key(watchers))
                n_watchers++;
        r = array_reserve((void **)&effects->watched_changes, &effects->watched_changes_capacity,
                          effects->n_watched_changes + 1, sizeof(*effects->watched_changes));
        if (r < 0)
                return r;
        return array_reserve((void **)&effects->notifications, &effects->notifications_capacity,
                             effects->n_notifications + n_watchers, sizeof(*effects->notifications));
}

static void add_watched_change(struct effects *effects, struct entry *entry, struct version version) {
        ASSERT(effects->n_watched_changes < effects->watched_changes_capacity);
        effects->watched_changes[effects->n_watched_changes++] = (struct watched_change){
                .version = version,
                .entry = entry ? entry_ref(entry) : NULL,
        };
}

void effects_notify(struct effects *effects, const struct engine *engine, struct entry *entry,
                    struct registration *watchers, struct version version) {
        size_t watched_change = effects->n_watched_changes;

        for (; watchers; watchers = registration_next_of_key(watchers)) {
                if (!revocation_lets_notify(engine, watchers))
                        continue;
                if (effects->n_watched_changes == watched_change)
                        add_watched_change(effects, entry, version);

                ASSERT(effects->n_notifications < effects->notifications_capacity);
                effects->notifications[effects->n_notifications++] = (struct notification){
                        .registration = registration_ref(watchers),
                        .watched_change = watched_change,
                };
                effects->n_bytes += registration_bytes(watchers) + entry_bytes(entry);
        }
}

void effects_forget(struct effects *effects, uint64_t number) {
        if (array_reserve((void **)&effects->forgotten, &effects->forgotten_capacity,
                          effects->n_forgotten + 1, sizeof(*effects->forgotten)) == 0)
                effects->forgotten[effects->n_forgotten++] = number;
}
