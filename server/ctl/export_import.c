/* SPDX-License-Identifier: Apache-2.0 */

/* export and import through the broker. */

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "ctl/command_run.h"
#include "ctl/lines.h"
#include "ctl/output.h"

static enum exit_code export_key(struct command_run *task, struct slice key) {
        CLEANUP(record_deinit) struct record record = { .deadline_ms = RECORD_NO_DEADLINE };
        struct session_request request = { 0 };
        enum exit_code code;

        session_request_add(&request, SLICE_LITERAL("GET"));
        session_request_add(&request, key);
        code = task_ask(task, &request);
        if (code != EXIT_DONE)
                return code;
        if (task->item.type == RESP3_NULL)
                return EXIT_DONE; /* gone since it was listed */
        if (task->item.type != RESP3_BLOB)
                return answer_is_unexpected(&task->reply);

        buf_append_slice(&record.key, key);
        buf_append_slice(&record.value, task->item.text);
        buf_append_slice(&record.version, task->reply.version);
        if (buf_failed(&record.key) || buf_failed(&record.value) || buf_failed(&record.version)) {
                complain("out of memory");
                return EXIT_USAGE;
        }
        record_write(&record, &task->output);
        return EXIT_DONE;
}

enum exit_code command_export(struct command_run *task) {
        const char *pattern = task->options->n_words > 0 ? task->options->words[0] : "*";

        return scan_each(task, slice_from_string(pattern), export_key);
}

static enum exit_code import_record(void *userdata, const struct record *record, int64_t now_ms) {
        struct command_run *task = userdata;
        struct session_request request = { 0 };
        char px[UINT64_DIGITS_MAX];
        char token[256];
        enum exit_code code;

        session_request_add(&request, SLICE_LITERAL("SET"));
        session_request_add(&request, buf_slice(&record->key));
        session_request_add(&request,
                            record->value.length > 0 ? buf_slice(&record->value) : SLICE_LITERAL(""));
        if (record->deadline_ms != RECORD_NO_DEADLINE) {
                session_request_add(&request, SLICE_LITERAL("PX"));
                session_request_add(
                        &request,
                        (struct slice){ (const uint8_t *)px,
                                        format_uint64(px, (uint64_t)(record->deadline_ms - now_ms), 1) });
        }
        if (record->token.length >= sizeof(token)) {
                complain("\"%s\": the token is too long", LOG_TEXT(buf_slice(&record->key)));
                return EXIT_USAGE;
        }
        if (record->token.length > 0) {
                memcpy(token, record->token.data, record->token.length);
                token[record->token.length] = '\0';
                request.fence = token;
        }

        code = task_ask(task, &request);
        if (code != EXIT_DONE)
                complain("\"%s\" was not set; the import ends here", LOG_TEXT(buf_slice(&record->key)));
        return code;
}

enum exit_code command_import(struct command_run *task) {
        return lines_import(task->options->words[0], import_record, task);
}
