/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <mqtt_protocol.h>
#include <stdlib.h>

#include "mqtt/conversion.h"

#define S SLICE_LITERAL

/* Free an empty text and set it to NULL, as the readers of libmosquitto 2.1 return it. */
static void set_empty_to_null(char **text) {
        if (!*text || **text)
                return;
        free(*text);
        *text = NULL;
}

const mosquitto_property *mosquitto_property_read_string(const mosquitto_property *list, int identifier,
                                                         char **value, bool skip_first) {
        const mosquitto_property *(*read)(const mosquitto_property *, int, char **, bool);
        const mosquitto_property *found;

        *(void **)&read = dlsym(RTLD_NEXT, "mosquitto_property_read_string");
        found = read(list, identifier, value, skip_first);
        set_empty_to_null(value);
        return found;
}

const mosquitto_property *mosquitto_property_read_string_pair(const mosquitto_property *list, int identifier,
                                                              char **name, char **value, bool skip_first) {
        const mosquitto_property *(*read)(const mosquitto_property *, int, char **, char **, bool);
        const mosquitto_property *found;

        *(void **)&read = dlsym(RTLD_NEXT, "mosquitto_property_read_string_pair");
        found = read(list, identifier, name, value, skip_first);
        set_empty_to_null(name);
        set_empty_to_null(value);
        return found;
}

static void expect_empty(struct slice value) {
        cr_expect_not_null(value.data);
        cr_expect_eq(value.length, 0);
}

/* Also a property without a name, which is not wanted. */
Test(conversion, empty_properties_are_present) {
        const struct slice wanted[] = { S("__ts"), { 0 } };
        const struct mosquitto_message message = { .topic = "topic", .qos = 1 };
        mosquitto_property *properties = NULL;
        struct mqtt_incoming incoming;

        mosquitto_property_add_string(&properties, MQTT_PROP_RESPONSE_TOPIC, "");
        mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA, "", 0);
        mosquitto_property_add_string_pair(&properties, MQTT_PROP_USER_PROPERTY, "", "");
        mosquitto_property_add_string_pair(&properties, MQTT_PROP_USER_PROPERTY, "__ts", "");

        cr_assert_eq(mqtt_incoming_init(&incoming, &message, properties, wanted), 0);
        expect_empty(incoming.message.response_topic);
        expect_empty(incoming.message.correlation_data);
        cr_assert_eq(incoming.message.n_user_properties, 1);
        cr_expect(slice_equal(incoming.message.user_properties[0].name, S("__ts")));
        expect_empty(incoming.message.user_properties[0].value);
        mqtt_incoming_deinit(&incoming);
        mosquitto_property_free_all(&properties);
}
