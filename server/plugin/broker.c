/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/broker.h"

#include <errno.h>
#include <stdlib.h>

/* What the headers of 2.0 do not name. */
#define EVENT_CLIENT_OFFLINE 28
#define ANSWER_IGNORE        32

static bool is_2_1;

int broker_on_end(mosquitto_plugin_id_t *id, MOSQ_FUNC_generic_callback callback, void *userdata) {
        int result;

        result = mosquitto_callback_register(id, EVENT_CLIENT_OFFLINE, callback, NULL, userdata);
        if (result == MOSQ_ERR_NOMEM)
                return -ENOMEM;
        is_2_1 = result == MOSQ_ERR_SUCCESS;

        return broker_error(mosquitto_callback_register(id, MOSQ_EVT_DISCONNECT, callback, NULL, userdata));
}

void broker_on_end_stop(mosquitto_plugin_id_t *id, MOSQ_FUNC_generic_callback callback) {
        mosquitto_callback_unregister(id, MOSQ_EVT_DISCONNECT, callback, NULL);
        if (is_2_1)
                mosquitto_callback_unregister(id, EVENT_CLIENT_OFFLINE, callback, NULL);
}

int broker_not_my_business(void) {
        return is_2_1 ? ANSWER_IGNORE : MOSQ_ERR_PLUGIN_DEFER;
}

bool broker_needs_an_answer(void) {
        return !is_2_1;
}

int broker_reloaded(void) {
        return is_2_1 ? MOSQ_ERR_SUCCESS : MOSQ_ERR_PLUGIN_DEFER;
}

bool broker_tick_is_last(void) {
        return !is_2_1;
}

void broker_free_read(void *memory) {
        if (is_2_1)
                mosquitto_free(memory);
        else
                free(memory);
}

void broker_cleanup_read(void *pointer_to_pointer) {
        broker_free_read(*(void **)pointer_to_pointer);
}

int broker_error(int result) {
        switch (result) {
        case MOSQ_ERR_SUCCESS:
                return 0;
        case MOSQ_ERR_NOMEM:
                return -ENOMEM;
        default:
                return -EINVAL;
        }
}
