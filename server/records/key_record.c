/* SPDX-License-Identifier: Apache-2.0 */

#include "records/key_record.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "protocol/hlc.h"

void key_record_deinit(struct key_record *record) {
        buf_deinit(&record->key);
        buf_deinit(&record->value);
        buf_deinit(&record->version);
        buf_deinit(&record->fence);
}

static void write_text(struct buf *line, const char *name, const struct buf *text, bool or_null) {
        if (text->length > 0 || or_null)
                json_add_bytes(line, name, text->length > 0 ? buf_slice(text) : (struct slice){ 0 }, false);
}

void key_record_write(const struct key_record *record, struct buf *line) {
        json_begin(line);
        json_add_bytes(line, "key", buf_slice(&record->key), false);
        json_add_bytes(line, "value",
                       record->value.length > 0 ? buf_slice(&record->value) : SLICE_LITERAL(""), false);
        write_text(line, "version", &record->version, false);
        if (record->deadline_ms != KEY_RECORD_NO_DEADLINE)
                json_add_uint(line, "deadline", (uint64_t)record->deadline_ms);
        else if (record->has_details)
                json_add_bytes(line, "deadline", (struct slice){ 0 }, false);
        write_text(line, "token", &record->fence, record->has_details);
        json_end(line);
}

/* Read the member NAME or NAME_base64. False if both are missing or malformed. */
static bool record_read_bytes(const json_t *object, const char *name, struct buf *bytes) {
        const json_t *text = json_object_get(object, name);
        char base64_name[32];

        buf_reset(bytes);
        if (text) {
                if (!json_is_string(text))
                        return false;
                buf_append(bytes, json_string_value(text), json_string_length(text));
                return true;
        }

        snprintf(base64_name, sizeof(base64_name), "%s_base64", name);
        text = json_object_get(object, base64_name);
        return json_is_string(text) &&
               base64_append_decoded(bytes, (struct slice){ (const uint8_t *)json_string_value(text),
                                                            json_string_length(text) }) == 0;
}

/* Return true also if the member is absent or null; bytes are then empty. */
static bool read_hlc(const json_t *object, const char *name, struct buf *bytes) {
        const json_t *text = json_object_get(object, name);
        struct hlc hlc;

        buf_reset(bytes);
        if (!text || json_is_null(text))
                return true;
        return record_read_bytes(object, name, bytes) && hlc_parse(buf_slice(bytes), &hlc) == 0;
}

static bool read_deadline(const json_t *object, int64_t *ret_deadline_ms) {
        const json_t *deadline = json_object_get(object, "deadline");

        *ret_deadline_ms = KEY_RECORD_NO_DEADLINE;
        if (!deadline || json_is_null(deadline))
                return true;

        *ret_deadline_ms = json_integer_value(deadline);
        return json_is_integer(deadline) && *ret_deadline_ms >= 0;
}

static const char *read_members(const json_t *object, struct key_record *record) {
        if (!json_is_object(object))
                return "a JSON object was expected";
        if (!record_read_bytes(object, "key", &record->key) || record->key.length == 0)
                return "a non-empty \"key\" or \"key_base64\" was expected";
        if (!record_read_bytes(object, "value", &record->value))
                return "\"value\" or \"value_base64\" was expected";
        if (!read_hlc(object, "version", &record->version))
                return "\"version\" is not wallClock:counter:nodeId";
        if (!read_hlc(object, "token", &record->fence))
                return "\"token\" is not wallClock:counter:nodeId";
        if (!read_deadline(object, &record->deadline_ms))
                return "\"deadline\" is not a number of milliseconds";
        record->has_details = json_object_get(object, "deadline") || json_object_get(object, "token");
        return NULL;
}

CLEANUP_FUNCTION(cleanup_json, json_t *, json_decref)

int key_record_read_object(struct key_record *record, const json_t *object, const char **ret_fault) {
        const char *fault = object ? read_members(object, record) : "the line is not JSON";

        if (buf_failed(&record->key) || buf_failed(&record->value) || buf_failed(&record->version) ||
            buf_failed(&record->fence))
                return -ENOMEM;
        if (!fault)
                return 0;

        *ret_fault = fault;
        return -EBADMSG;
}

int key_record_read(struct key_record *record, struct slice line, const char **ret_fault) {
        CLEANUP(cleanup_json)
        json_t *object = json_loadb((const char *)line.data, line.length,
                                    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

        return key_record_read_object(record, object, ret_fault);
}

bool key_record_matches(const json_t *object) {
        return (json_object_get(object, "key") || json_object_get(object, "key_base64")) &&
               (json_object_get(object, "value") || json_object_get(object, "value_base64"));
}
