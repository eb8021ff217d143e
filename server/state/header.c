/* SPDX-License-Identifier: Apache-2.0 */

#include "state/header.h"

#include "base/random.h"

void state_header_renew_instance(struct state_header *header) {
        random_hex(header->instance_id, sizeof(header->instance_id));
        random_fill(&header->token_key, sizeof(header->token_key));
        random_fill(&header->served_broker_run, sizeof(header->served_broker_run));
}

void state_header_init(struct state_header *ret_header) {
        *ret_header = (struct state_header){ 0 };
        random_fill(&ret_header->digest_key, sizeof(ret_header->digest_key));
        random_fill(&ret_header->row_hash_key, sizeof(ret_header->row_hash_key));
        random_fill(&ret_header->table_key, sizeof(ret_header->table_key));
        state_header_renew_instance(ret_header);
        ret_header->served_broker_run = 0;
}
