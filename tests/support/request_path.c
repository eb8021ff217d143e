/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the address of each function that one SET of an existing key enters, from pipeline_receive() to its return: one
 * per line, in the order of the calls. The storage is volatile, so the reply is published before the return. The
 * functions are compiled with -finstrument-functions: see request_path.sh.
 *
 * usage: request_path
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "pipeline/pipeline.h"
#include "protocol/topics.h"

#define NOT_TRACED  __attribute__((no_instrument_function))
#define N_CALLS_MAX 10000

static void *calls[N_CALLS_MAX];
static size_t n_calls;
static bool is_tracing;
static size_t n_published;

NOT_TRACED void __cyg_profile_func_enter(void *function, void *call_site);
NOT_TRACED void __cyg_profile_func_exit(void *function, void *call_site);

void __cyg_profile_func_enter(void *function, void *call_site) {
        (void)call_site;
        if (is_tracing && n_calls < N_CALLS_MAX)
                calls[n_calls++] = function;
}

void __cyg_profile_func_exit(void *function, void *call_site) {
        (void)function;
        (void)call_site;
}

NOT_TRACED static int publish(void *userdata, const struct message *message, uint16_t *ret_id) {
        (void)userdata;
        (void)message;
        *ret_id = (uint16_t)++n_published;
        return 0;
}

NOT_TRACED static bool has_room(void *userdata) {
        (void)userdata;
        return true;
}

NOT_TRACED static int64_t clock_ns(void *userdata) {
        (void)userdata;
        return 1000000;
}

NOT_TRACED static void serving(void *userdata, enum broker_kind broker_kind) {
        (void)userdata;
        (void)broker_kind;
}

NOT_TRACED static void receive_set(struct pipeline *pipeline, struct slice timestamp, struct now now) {
        struct message message = {
                .topic = SLICE_LITERAL(TOPIC_INVOKE),
                .response_topic = SLICE_LITERAL("clients/client/response"),
                .correlation_data = SLICE_LITERAL("0123456789abcdef"),
                .payload = SLICE_LITERAL("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n"),
                .qos = 1,
                .has_expiry = true,
                .expiry_s = 10,
                .user_properties = { { SLICE_LITERAL("__ts"), timestamp },
                                     { SLICE_LITERAL("__srcId"), SLICE_LITERAL("client") },
                                     { SLICE_LITERAL("__protVer"), SLICE_LITERAL("1.0") } },
                .n_user_properties = 3,
        };

        pipeline_receive(pipeline, &message, now);
}

NOT_TRACED int main(void) {
        struct pipeline_config config = {
                .engine = { .node_id = SLICE_LITERAL("store"),
                            .max_keys = 10,
                            .max_bytes = 1 << 20,
                            .max_registrations = 10,
                            .max_remembered_bytes = 1 << 20 },
        };
        struct now now = { .wall_ms = 1000000, .mono_ns = 1000000 };
        struct pipeline *pipeline;
        struct storage *storage;

        config.transport =
                (struct transport){ .publish = publish, .has_room = has_room, .clock_ns = clock_ns };
        config.callbacks = (struct pipeline_callbacks){ .serving = serving };
        if (storage_memory_new(&storage) < 0 || pipeline_new(&pipeline, &config, storage, now) < 0)
                return EXIT_FAILURE;

        pipeline_connected(pipeline, false, now);
        receive_set(pipeline, SLICE_LITERAL("1000000:1:client"), now);
        ASSERT(n_published == 1);
        is_tracing = true;
        receive_set(pipeline, SLICE_LITERAL("1000000:2:client"), now);
        is_tracing = false;
        ASSERT(n_published == 2 && pipeline_counters(pipeline)->n_replies[VERB_SET][OUTCOME_DONE] == 2);

        for (size_t i = 0; i < n_calls; i++)
                printf("%p\n", calls[i]);
        pipeline_free(pipeline);
        return EXIT_SUCCESS;
}
