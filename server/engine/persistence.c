/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/persistence.h"

#include <sodium.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/glob.h"
#include "engine/internal.h"

/* A key whose match runs out of steps is stored: it may match, and an acknowledged write must not be lost. */
bool persistence_stores(const struct engine_config *config, struct slice key, bool is_requested) {
        uint64_t budget = SCAN_PAGE_STEPS_MAX;

        if (config->persist != PERSIST_CUSTOM)
                return config->persist == PERSIST_ALL;
        return is_requested || (config->persist_pattern.data &&
                                (glob_match(config->persist_pattern, key, &budget) || budget == 0));
}

uint64_t persistence_digest(const struct engine_config *config) {
        struct slice pattern =
                config->persist == PERSIST_CUSTOM ? config->persist_pattern : (struct slice){ 0 };
        uint8_t bytes[crypto_generichash_BYTES_MIN];
        uint64_t digest;

        if (config->persist == PERSIST_ALL)
                return PERSISTENCE_ALL;

        crypto_generichash(bytes, sizeof(bytes), pattern.data, pattern.length, NULL, 0);
        memcpy(&digest, bytes, sizeof(digest));
        return digest == PERSISTENCE_ALL || digest == PERSISTENCE_UNKNOWN ? 1 : digest;
}

bool persistence_may_have_lost(const struct engine_config *config, uint64_t stored_digest,
                               struct slice key) {
        if (stored_digest == PERSISTENCE_ALL)
                return false;

        /* After a change of the persistence policy, any key may be lost: the former policy is unknown, except its digest. */
        return stored_digest != persistence_digest(config) || !persistence_stores(config, key, false);
}

static bool may_be_lost(const struct engine *engine, uint64_t stored_digest,
                        const struct registration *registration) {
        CLEANUP(buf_deinit) struct buf client = { 0 }, key = { 0 };

        registration_names(registration, &client, &key);
        return buf_failed(&key) ||
               persistence_may_have_lost(&engine->config, stored_digest, buf_slice(&key));
}

bool persistence_lost_watched_key(const struct engine *engine, uint64_t stored_digest, uint64_t connection) {
        const struct registration *registration = watch_of_connection(&engine->watch, connection);

        while (registration && !may_be_lost(engine, stored_digest, registration))
                registration = registration->next_of_client;
        return registration;
}
