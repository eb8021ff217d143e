/* SPDX-License-Identifier: Apache-2.0 */

#include "exports/exported_key.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "protocol/hlc.h"

void exported_key_deinit(struct exported_key *exported) {
        buf_deinit(&exported->key);
        buf_deinit(&exported->value);
        buf_deinit(&exported->version);
        buf_deinit(&exported->fence);
}

static void write_text(struct buf *line, const char *name, const struct buf *text, bool or_null) {
        if (text->length > 0 || or_null)
                json_add_bytes(line, name, text->length > 0 ? buf_slice(text) : (struct slice){ 0 }, false);
}

void exported_key_write(const struct exported_key *exported, struct buf *line) {
        json_begin(line);
        json_add_bytes(line, "key", buf_slice(&exported->key), false);
        json_add_bytes(line, "value",
                       exported->value.length > 0 ? buf_slice(&exported->value) : SLICE_LITERAL(""), false);
        write_text(line, "version", &exported->version, false);
        if (exported->deadline_ms != EXPORTED_KEY_NO_DEADLINE)
                json_add_uint(line, "deadline", (uint64_t)exported->deadline_ms);
        else if (exported->has_details)
                json_add_bytes(line, "deadline", (struct slice){ 0 }, false);
        write_text(line, "token", &exported->fence, exported->has_details);
        json_end(line);
        line->failed |= buf_failed(&exported->key) || buf_failed(&exported->value) ||
                        buf_failed(&exported->version) || buf_failed(&exported->fence);
}

/* Read the member NAME or NAME_base64. False if both are missing or malformed. */
static bool read_bytes(const json_t *object, const char *name, struct buf *bytes) {
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
        return read_bytes(object, name, bytes) && hlc_parse(buf_slice(bytes), &hlc) == 0;
}

static bool read_deadline(const json_t *object, int64_t *ret_deadline_ms) {
        const json_t *deadline = json_object_get(object, "deadline");

        *ret_deadline_ms = EXPORTED_KEY_NO_DEADLINE;
        if (!deadline || json_is_null(deadline))
                return true;

        *ret_deadline_ms = json_integer_value(deadline);
        return json_is_integer(deadline) && *ret_deadline_ms >= 0;
}

static const char *read_members(const json_t *object, struct exported_key *exported) {
        if (!json_is_object(object))
                return "a JSON object was expected";
        if (!read_bytes(object, "key", &exported->key) || exported->key.length == 0)
                return "a non-empty \"key\" or \"key_base64\" was expected";
        if (!read_bytes(object, "value", &exported->value))
                return "\"value\" or \"value_base64\" was expected";
        if (!read_hlc(object, "version", &exported->version))
                return "\"version\" is not wallClock:counter:nodeId";
        if (!read_hlc(object, "token", &exported->fence))
                return "\"token\" is not wallClock:counter:nodeId";
        if (!read_deadline(object, &exported->deadline_ms))
                return "\"deadline\" is not a number of milliseconds";
        exported->has_details = json_object_get(object, "deadline") || json_object_get(object, "token");
        return NULL;
}

CLEANUP_FUNCTION(cleanup_json, json_t *, json_decref)

int exported_key_read_object(struct exported_key *exported, const json_t *object, const char **ret_fault) {
        const char *fault = object ? read_members(object, exported) : "the line is not JSON";

        if (buf_failed(&exported->key) || buf_failed(&exported->value) || buf_failed(&exported->version) ||
            buf_failed(&exported->fence))
                return -ENOMEM;
        if (!fault)
                return 0;

        *ret_fault = fault;
        return -EBADMSG;
}

int exported_key_read(struct exported_key *exported, struct slice line, const char **ret_fault) {
        CLEANUP(cleanup_json)
        json_t *object = json_loadb((const char *)line.data, line.length,
                                    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

        return exported_key_read_object(exported, object, ret_fault);
}

bool exported_key_matches(const json_t *object) {
        return (json_object_get(object, "key") || json_object_get(object, "key_base64")) &&
               (json_object_get(object, "value") || json_object_get(object, "value_base64"));
}
