/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nearly every request bears no stamp yet: ours is appended to the list that the broker made. Only where
 * somebody put one in already the list is made anew, without it.
 */

#include <errno.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "plugin/internal.h"

enum request_properties {
        REQUEST_PLAIN = 0,
        REQUEST_FORGED,  /* bears a stamp */
        REQUEST_INVALID, /* must not be answered where it asks to be */
};

/* For properties_copy(). */
static int is_no_stamp(const mosquitto_property *property) {
        CLEANUP(broker_cleanup_read) char *name = NULL;
        int r;

        if (mosquitto_property_identifier(property) != MQTT_PROP_USER_PROPERTY)
                return 1;

        r = property_name(property, &name);
        if (r < 0)
                return r;
        return !slice_starts_with(slice_from_string(name), SLICE_LITERAL(COMPANION_PROPERTY));
}

static int is_valid_response(const mosquitto_property *property) {
        CLEANUP(broker_cleanup_read) char *topic = NULL;
        int r;

        r = property_text(property, &topic);
        return r < 0 ? r : topic_is_valid_response(slice_from_string(topic));
}

static int inspect(const mosquitto_property *properties) {
        enum request_properties result = REQUEST_PLAIN;
        int r;

        for (const mosquitto_property *property = properties; property;
             property = mosquitto_property_next(property)) {
                if (mosquitto_property_identifier(property) == MQTT_PROP_RESPONSE_TOPIC) {
                        r = is_valid_response(property);
                        if (r < 0)
                                return r;
                        if (r == 0)
                                return REQUEST_INVALID;
                } else if (result == REQUEST_PLAIN) {
                        r = is_no_stamp(property);
                        if (r < 0)
                                return r;
                        if (r == 0)
                                result = REQUEST_FORGED;
                }
        }
        return result;
}

static int add(mosquitto_property **properties, const char *name, const char *value) {
        return broker_error(
                mosquitto_property_add_string_pair(properties, MQTT_PROP_USER_PROPERTY, name, value));
}

static int add_stamp(mosquitto_property **properties, const struct connection *connection) {
        const char *username = mosquitto_client_username(connection->client);
        int r;

        r = add(properties, COMPANION_PROPERTY_SEAL, connection->stamp);
        if (r < 0)
                return r;
        r = add(properties, COMPANION_PROPERTY_CLIENT_ID, connection->client_id);
        if (r < 0)
                return r;
        return username ? add(properties, COMPANION_PROPERTY_USERNAME, username) : 0;
}

static int replace_stamp(mosquitto_property *properties, const struct connection *connection) {
        CLEANUP(cleanup_properties) mosquitto_property *list = NULL;
        int r;

        r = properties_copy(&list, properties, is_no_stamp);
        if (r < 0)
                return r;
        r = add_stamp(&list, connection);
        if (r < 0)
                return r;

        properties_swap(properties, list);
        return 0;
}

static int stamp(struct plugin *plugin, struct mosquitto_evt_message *request, const char *client_id,
                 bool is_forged) {
        bool had_none = !request->properties;
        struct connection *connection;
        int r;

        r = presence_enter(plugin, request->client, client_id, &connection);
        if (r < 0)
                return r;

        r = is_forged ? replace_stamp(request->properties, connection)
                      : add_stamp(&request->properties, connection);
        if (r < 0) {
                /* Half a stamp is freed with the list that it was added to, if the broker knows of that list. */
                if (had_none)
                        mosquitto_property_free_all(&request->properties);
                return r;
        }

        /* A retained request would show its seal to the next who subscribes, and would be done again. */
        request->retain = false;
        return 0;
}

int stamp_request(struct plugin *plugin, struct mosquitto_evt_message *request) {
        const char *client_id = mosquitto_client_id(request->client);
        int r;

        if (!client_id)
                return MOSQ_ERR_ACL_DENIED;

        r = inspect(request->properties);
        if (r == REQUEST_INVALID) {
                mosquitto_log_printf(MOSQ_LOG_NOTICE, "statestore: %s asks for an answer where none may go",
                                     LOG_TEXT(slice_from_string(client_id)));
                return MOSQ_ERR_PROTOCOL;
        }
        if (r >= 0)
                r = stamp(plugin, request, client_id, r == REQUEST_FORGED);

        switch (r) {
        case 0:
                return MOSQ_ERR_SUCCESS;
        case -ENOMEM:
                return MOSQ_ERR_NOMEM;
        default: /* too many properties to sort through, a username that is no text */
                return MOSQ_ERR_ACL_DENIED;
        }
}
