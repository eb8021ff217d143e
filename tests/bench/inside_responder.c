/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The yardstick without a second process: a plugin of mosquitto that replies in its MESSAGE
 * callback. It reads the response topic, copies the correlation data, and publishes a fixed reply.
 * The request itself has no subscriber.
 */

#include <mosquitto.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>
#include <mqtt_protocol.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bench/fail.h"
#include "bench/fixed_reply.h"
#include "protocol/topics.h"

static struct message fixed_reply;

static void check(int result, const char *what) {
        if (result != MOSQ_ERR_SUCCESS)
                fail("%s: %s", what, mosquitto_strerror(result));
}

static mosquitto_property *reply_properties(const void *correlation, uint16_t correlation_length) {
        mosquitto_property *properties = NULL;
        int r;

        r = mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA, correlation,
                                          correlation_length);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_byte(&properties, MQTT_PROP_PAYLOAD_FORMAT_INDICATOR, 0);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_string(&properties, MQTT_PROP_CONTENT_TYPE, MESSAGE_CONTENT_TYPE);
        for (size_t i = 0; r == MOSQ_ERR_SUCCESS && i < fixed_reply.n_user_properties; i++)
                r = mosquitto_property_add_string_pair(
                        &properties, MQTT_PROP_USER_PROPERTY,
                        (const char *)fixed_reply.user_properties[i].name.data,
                        (const char *)fixed_reply.user_properties[i].value.data);
        check(r, "properties");
        return properties;
}

static int on_message(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_message *request = event_data;
        CLEANUP(cleanup_free) char *response_topic = NULL;
        CLEANUP(cleanup_free) void *correlation = NULL;
        uint16_t correlation_length;

        (void)event;
        (void)userdata;
        if (strcmp(request->topic, TOPIC_INVOKE) != 0)
                return MOSQ_ERR_SUCCESS;
        if (!mosquitto_property_read_string(request->properties, MQTT_PROP_RESPONSE_TOPIC, &response_topic,
                                            false) ||
            !mosquitto_property_read_binary(request->properties, MQTT_PROP_CORRELATION_DATA, &correlation,
                                            &correlation_length, false))
                fail("a request without a response topic or correlation data");

        check(mosquitto_broker_publish_copy(NULL, response_topic, (int)fixed_reply.payload.length,
                                            fixed_reply.payload.data, 1, false,
                                            reply_properties(correlation, correlation_length)),
              "publish");
        return MOSQ_ERR_SUCCESS;
}

int mosquitto_plugin_version(int n_versions, const int *versions) {
        (void)n_versions;
        (void)versions;
        return MOSQ_PLUGIN_VERSION;
}

int mosquitto_plugin_init(mosquitto_plugin_id_t *id, void **ret_userdata, struct mosquitto_opt *options,
                          int n_options) {
        (void)ret_userdata;
        (void)options;
        (void)n_options;
        fixed_reply_fill(&fixed_reply);
        return mosquitto_callback_register(id, MOSQ_EVT_MESSAGE, on_message, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *userdata, struct mosquitto_opt *options, int n_options) {
        (void)userdata;
        (void)options;
        (void)n_options;
        return MOSQ_ERR_SUCCESS;
}
