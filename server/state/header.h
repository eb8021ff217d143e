/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/clock.h"
#include "engine/scan_token.h"
#include "hash/hash.h"
#include "protocol/companion.h"

/* What must survive and exists once. Each change set has the complete header: see state/change_set.h. */
struct state_header {
        uint64_t n_commits;            /* number of the change set; 0: of an empty store */
        char node_id[NODE_ID_MAX + 1]; /* in the version of each entry; not fixed while n_commits is 0 */
        struct hash_key digest_key;    /* the engine hashes requests with it to find remembered replies */
        struct hash_key row_hash_key;  /* for the rows of a storage: see rows.h and keys.h of the storages */
        struct hash_key table_key;     /* of the engine's tables: a token of SCAN is a position in them */
        struct token_key token_key;    /* of the tokens of SCAN */
        /* new for each empty store: see common/protocol/companion.h */
        char instance_id[COMPANION_INSTANCE_TEXT_SIZE];
        /*
         * The run of the broker with the plugin that was served last (common/protocol/companion.h): the
         * stored executions are of its requests. 0: none was served. A random number that is no run: the
         * content is a copy, and no broker has been served since.
         */
        uint64_t served_broker_run;
        struct version clock;           /* at or above every version that the engine has issued */
        bool keys_may_be_lost;          /* engine_may_lose_keys() */
        uint64_t notification_sequence; /* of the last notification; 0: none */
        int64_t reading_ms, shift_ms;   /* of the timescale: see state/timescale.h */
};

/* Initialize the header of an empty store: random keys and instance id, clock 0. */
void state_header_init(struct state_header *ret_header);

/*
 * Replace the instance id, the served broker run and the token key by new random ones: the content is that
 * of a copy, or of an earlier time, so a token of SCAN from before would continue on other keys.
 */
void state_header_renew_instance(struct state_header *header);
