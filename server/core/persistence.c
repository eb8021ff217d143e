/* SPDX-License-Identifier: Apache-2.0 */

#include "core/persistence.h"

#include <xxhash.h>

#include "common/glob.h"

bool persistence_keeps(const struct engine_config *config, struct slice key) {
        uint64_t budget = SCAN_PAGE_STEPS_MAX;

        if (config->persist != PERSIST_CUSTOM)
                return config->persist == PERSIST_ALL;
        return config->persist_pattern.data && glob_match(config->persist_pattern, key, &budget);
}

uint64_t persistence_digest(const struct engine_config *config) {
        struct slice pattern =
                config->persist == PERSIST_CUSTOM ? config->persist_pattern : (struct slice){ 0 };
        uint64_t digest;

        if (config->persist == PERSIST_ALL)
                return PERSISTENCE_ALL;

        digest = XXH3_64bits_withSeed(pattern.data, pattern.length, pattern.data ? 1 : 0);
        return digest == PERSISTENCE_ALL || digest == PERSISTENCE_UNKNOWN ? 1 : digest;
}

bool persistence_may_have_lost(const struct engine_config *config, uint64_t before, struct slice key) {
        if (before == PERSISTENCE_ALL)
                return false;
        return before != persistence_digest(config) || !persistence_keeps(config, key);
}
