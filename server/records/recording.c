/* SPDX-License-Identifier: Apache-2.0 */

#include "records/recording.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "protocol/companion.h"
#include "protocol/resp3.h"

static const char *const type_names[N_RECORDED_TYPES] = {
        [RECORDED_START] = "start",
        [RECORDED_REQUEST] = "request",
        [RECORDED_REPLY] = "answer",
        [RECORDED_NOTIFICATION] = "notification",
};

/* 1. Writing */

static void add_bytes(struct buf *line, const char *name, struct slice bytes) {
        if (bytes.data)
                json_add_bytes(line, name, bytes, false);
}

/* Append the first two words of the payload as verb and key. */
static void add_words(struct buf *line, struct slice payload) {
        static const char *const names[] = { "verb", "key" };
        struct resp3_item item;

        if (resp3_read(&payload, &item) < 0 || item.type != RESP3_ARRAY)
                return;
        for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
                if (resp3_read(&payload, &item) < 0 || item.type != RESP3_BLOB)
                        return;
                add_bytes(line, names[i], item.text);
        }
}

static void add_properties(struct buf *line, const struct message *message) {
        const char *separator = "";

        json_add_name(line, "properties");
        buf_append_string(line, "[");
        for (size_t i = 0; i < message->n_user_properties; i++) {
                const struct user_property *property = &message->user_properties[i];

                if (slice_starts_with(property->name, SLICE_LITERAL(COMPANION_PROPERTY)))
                        continue;
                buf_append_string(line, separator);
                buf_append_string(line, "{");
                json_add_bytes(line, "name", property->name, false);
                json_add_bytes(line, "value", property->value, false);
                buf_append_string(line, "}");
                separator = ",";
        }
        buf_append_string(line, "]");
}

void recording_append(struct buf *line, enum recorded_type type, struct slice client,
                      const struct message *message, int64_t time_ms) {
        json_begin(line);
        json_add_bytes(line, "type", slice_from_string(type_names[type]), false);
        json_add_uint(line, "time", (uint64_t)time_ms);
        if (type == RECORDED_REQUEST) {
                add_bytes(line, "client", client);
                add_words(line, message->payload);
        }
        if (type != RECORDED_START) {
                add_bytes(line, "topic", message->topic);
                add_bytes(line, "response_topic", message->response_topic);
                add_bytes(line, "correlation_data", message->correlation_data);
                json_add_uint(line, "qos", message->qos);
                if (message->has_expiry)
                        json_add_uint(line, "expiry", message->expiry_s);
                add_properties(line, message);
                json_add_bytes(line, "payload",
                               message->payload.length > 0 ? message->payload : SLICE_LITERAL(""), false);
        }
        json_end(line);
}

/* 2. Reading */

struct recording_reader {
        const json_t *object;
        uint8_t *at; /* where to store the next decoded bytes */
        const char *fault;
        bool is_out_of_memory;
};

static struct slice decode(struct recording_reader *reader, const json_t *text, const char *fault) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        struct slice decoded = { reader->at, 0 };
        int r;

        r = base64_append_decoded(&bytes, (struct slice){ (const uint8_t *)json_string_value(text),
                                                          json_string_length(text) });
        if (r < 0) {
                reader->is_out_of_memory = r == -ENOMEM;
                reader->fault = fault;
                return (struct slice){ 0 };
        }

        if (bytes.length > 0)
                memcpy(reader->at, bytes.data, bytes.length);
        decoded.length = bytes.length;
        reader->at[bytes.length] = '\0';
        reader->at += bytes.length + 1;
        return decoded;
}

/* Absent if the member is missing. */
static struct slice read_bytes(struct recording_reader *reader, const json_t *object, const char *name,
                               const char *fault) {
        const json_t *text = json_object_get(object, name);
        char base64_name[32];

        snprintf(base64_name, sizeof(base64_name), "%s_base64", name);
        if (json_is_string(text))
                return (struct slice){ (const uint8_t *)json_string_value(text), json_string_length(text) };
        if (!text && json_is_string(json_object_get(object, base64_name)))
                return decode(reader, json_object_get(object, base64_name), fault);
        if (text || json_object_get(object, base64_name))
                reader->fault = fault;
        return (struct slice){ 0 };
}

static int64_t read_number(struct recording_reader *reader, const char *name, int64_t max,
                           const char *fault) {
        const json_t *number = json_object_get(reader->object, name);

        if (!json_is_integer(number) || json_integer_value(number) < 0 || json_integer_value(number) > max) {
                reader->fault = fault;
                return 0;
        }
        return json_integer_value(number);
}

static void read_type(struct recording_reader *reader, struct recorded *recorded) {
        const char *name = json_string_value(json_object_get(reader->object, "type"));

        while (recorded->type < N_RECORDED_TYPES && (!name || strcmp(name, type_names[recorded->type]) != 0))
                recorded->type++;
        if (recorded->type == N_RECORDED_TYPES)
                reader->fault = "\"type\" was expected: start, request, answer or notification";
}

static void read_properties(struct recording_reader *reader, struct message *message) {
        const char *fault = "\"properties\" was expected: a list of objects with \"name\" and \"value\"";
        const json_t *list = json_object_get(reader->object, "properties");

        if (!json_is_array(list) || json_array_size(list) > MESSAGE_USER_PROPERTIES_MAX) {
                reader->fault = fault;
                return;
        }
        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *item = json_array_get(list, i);
                struct user_property *property = &message->user_properties[message->n_user_properties++];

                property->name = read_bytes(reader, item, "name", fault);
                property->value = read_bytes(reader, item, "value", fault);
                if (!property->name.data || !property->value.data)
                        reader->fault = fault;
        }
}

static void read_message(struct recording_reader *reader, struct recorded *recorded) {
        struct message *message = &recorded->message;
        const json_t *object = reader->object;

        recorded->client = read_bytes(reader, object, "client", "\"client\" is not a string");
        recorded->verb = read_bytes(reader, object, "verb", "\"verb\" is not a string");
        recorded->key = read_bytes(reader, object, "key", "\"key\" is not a string");
        message->topic = read_bytes(reader, object, "topic", "\"topic\" is not a string");
        message->response_topic =
                read_bytes(reader, object, "response_topic", "\"response_topic\" is not a string");
        message->correlation_data =
                read_bytes(reader, object, "correlation_data", "\"correlation_data\" is not a string");
        message->qos = (uint8_t)read_number(reader, "qos", 2, "\"qos\" was expected: 0, 1 or 2");
        message->has_expiry = json_object_get(object, "expiry");
        if (message->has_expiry)
                message->expiry_s = (uint32_t)read_number(reader, "expiry", UINT32_MAX,
                                                          "\"expiry\" is not a number of seconds");
        read_properties(reader, message);
        message->payload = read_bytes(reader, object, "payload", "\"payload\" is not a string");
        if (!message->topic.data || !message->payload.data)
                reader->fault = "\"topic\" and \"payload\" were expected";
}

void recorded_deinit(struct recorded *recorded) {
        json_decref(recorded->json);
        free(recorded->decoded);
}

int recording_read(struct slice line, struct recorded *ret_recorded, const char **ret_fault) {
        struct recorded recorded = { 0 };
        struct recording_reader reader = { 0 };

        recorded.json = json_loadb((const char *)line.data, line.length,
                                   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        recorded.decoded =
                malloc(line.length + 1); /* enough: base64 is longer than the bytes that it encodes */
        reader.object = recorded.json;
        reader.at = recorded.decoded;

        if (!recorded.decoded) {
                reader.is_out_of_memory = true;
        } else if (!json_is_object(recorded.json)) {
                reader.fault = "a JSON object was expected";
        } else {
                read_type(&reader, &recorded);
                recorded.time_ms =
                        read_number(&reader, "time", INT64_MAX, "\"time\" was expected: milliseconds");
                if (!reader.fault && recorded.type != RECORDED_START)
                        read_message(&reader, &recorded);
        }
        if (!reader.fault && !reader.is_out_of_memory) {
                *ret_recorded = recorded;
                return 0;
        }

        recorded_deinit(&recorded);
        *ret_fault = reader.fault;
        return reader.is_out_of_memory ? -ENOMEM : -EBADMSG;
}
