/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/persistence.h"

#include "base/glob.h"
#include "engine/internal.h"

/*
 * A key whose match runs out of steps is stored: it may match, and an acknowledged write must not
 * be lost. The rules share the steps.
 */
static bool is_selected(const struct engine_config *config, struct slice key) {
        uint64_t budget = SCAN_PAGE_STEPS_MAX;

        for (size_t i = 0; i < config->n_persist_rules; i++) {
                const struct persist_rule *rule = &config->persist_rules[i];

                if (rule->is_key ? slice_equal(rule->text, key)
                                 : glob_match(rule->text, key, &budget) || budget == 0)
                        return true;
        }
        return false;
}

bool persistence_stores(const struct engine_config *config, struct slice key, bool is_requested) {
        if (config->persist != PERSIST_CUSTOM)
                return config->persist == PERSIST_ALL;
        return is_requested || is_selected(config, key);
}

void engine_restore_lost_keys(struct engine *engine) {
        engine->is_notifying_lost = true;
        registrations_restart_keys(&engine->registrations);
}

/* Notify the watchers if the key does not exist. Returns 0 or -ENOMEM. */
static int notify_if_lost(struct engine *engine, struct slice key, struct now now, struct effects *effects) {
        uint64_t hash = keyspace_hash(&engine->keyspace, key);
        struct registration *watchers = registrations_of_key(&engine->registrations, hash, key);
        int r;

        if (!watchers || keyspace_find(&engine->keyspace, hash, key))
                return 0;

        r = effects_reserve_key_change(effects, watchers);
        if (r < 0)
                return r;
        effects_notify(effects, engine, NULL, watchers, clock_tick(&engine->clock, now.wall_ms));
        effects->n_lost++;
        return 0;
}

int persistence_notify_lost(struct engine *engine, struct now now, size_t *n_changes_left,
                            struct effects *effects) {
        struct slice key;
        int r;

        for (; engine->is_notifying_lost && *n_changes_left > 0 && !effects_step_is_full(effects);
             (*n_changes_left)--) {
                engine->is_notifying_lost = registrations_next_key(&engine->registrations, &key);
                if (!engine->is_notifying_lost)
                        return 0;
                r = notify_if_lost(engine, key, now, effects);
                if (r < 0) {
                        engine_restore_lost_keys(engine);
                        return r;
                }
        }
        return 0;
}
