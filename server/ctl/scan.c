/* SPDX-License-Identifier: Apache-2.0 */

/* The commands for many keys: scan, and export and import through the broker. */

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/input.h"
#include "ctl/run.h"

/* The output is written when it exceeds this number of bytes. */
#define OUTPUT_BUFFERED_MAX 65536

/*
 * Called for each key. May send requests, and appends its result to run->output. A result other
 * than EXIT_DONE ends the scan.
 */
typedef enum exit_code key_function(struct command_run *run, struct slice key);

static void flush_output(struct command_run *run) {
        output_write(&run->output);
        buf_reset(&run->output);
}

/*
 * Call function for each key of the page. Sets *ret_token to the token of the next page; empty
 * after the last one.
 */
static enum exit_code read_page(struct command_run *run, const struct session_reply *page,
                                key_function *function, struct buf *ret_token) {
        struct slice rest = page->rest;
        struct resp3_item keys, item;
        enum exit_code code = EXIT_DONE;

        if (page->item.type != RESP3_ARRAY || page->item.number < 1 || page->item.number > 2 ||
            resp3_read(&rest, &keys) < 0 || keys.type != RESP3_ARRAY)
                return session_print_unexpected_reply(page);

        for (int64_t i = 0; i < keys.number && code == EXIT_DONE && !output_has_failed(); i++) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB)
                        return session_print_unexpected_reply(page);
                code = function(run, item.text);
                if (run->output.length >= OUTPUT_BUFFERED_MAX)
                        flush_output(run);
        }
        flush_output(run);
        if (code != EXIT_DONE || output_has_failed())
                return code;

        buf_reset(ret_token);
        if (page->item.number == 2) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB || item.text.length == 0)
                        return session_print_unexpected_reply(page);
                buf_append_slice(ret_token, item.text);
        }
        return rest.length > 0 ? session_print_unexpected_reply(page) : EXIT_DONE;
}

/* Call function for each key that matches the pattern. */
static enum exit_code scan(struct command_run *run, const char *pattern, key_function *function) {
        CLEANUP(session_reply_deinit) struct session_reply page = { 0 };
        CLEANUP(buf_deinit) struct buf token = { 0 };
        enum exit_code code;

        do {
                struct session_request request = { 0 };

                session_request_add_string(&request, "SCAN");
                session_request_add_string(&request, pattern);
                if (token.length > 0)
                        session_request_add(&request, buf_slice(&token));
                code = session_ask(run->session, &request, &page);
                if (code == EXIT_DONE)
                        code = read_page(run, &page, function, &token);
        } while (code == EXIT_DONE && token.length > 0 && !output_has_failed());
        return code;
}

static const char *pattern_of(const struct command_run *run) {
        return run->options->n_words > 0 ? run->options->words[0] : "*";
}

/* Append a JSON string or, for a key that is not UTF-8, the same object member as in an export. */
static void append_json_key(struct buf *line, struct slice key) {
        if (slice_is_utf8(key)) {
                json_append_string(line, key);
                return;
        }
        buf_append_string(line, "{");
        json_add_bytes(line, "key", key, false);
        buf_append_string(line, "}");
}

static enum exit_code print_key(struct command_run *run, struct slice key) {
        const struct command_options *options = run->options;

        if (options->hex) {
                buf_append_string(&run->output, options->json ? "\"" : "");
                base16_append(&run->output, key);
                buf_append_string(&run->output, options->json ? "\"" : "");
        } else if (options->json) {
                append_json_key(&run->output, key);
        } else {
                append_printable(&run->output, key, false);
        }
        buf_append_string(&run->output, "\n");
        return EXIT_DONE;
}

enum exit_code command_scan(struct command_run *run) {
        return scan(run, pattern_of(run), print_key);
}

static enum exit_code add_key(struct command_run *run, struct slice key) {
        struct buf *copy = command_run_add_key(run);

        if (copy)
                buf_append_slice(copy, key);
        return !copy || buf_failed(copy) ? complain_of_memory() : EXIT_DONE;
}

enum exit_code scan_add_keys(struct command_run *run, const char *pattern) {
        return scan(run, pattern, add_key);
}

static enum exit_code export_key(struct command_run *run, struct slice key) {
        CLEANUP(key_record_deinit) struct key_record record = { .deadline_ms = KEY_RECORD_NO_DEADLINE };
        struct session_request request = { 0 };
        enum exit_code code;

        session_request_add_string(&request, "GET");
        session_request_add(&request, key);
        code = session_ask(run->session, &request, &run->reply);
        if (code != EXIT_DONE)
                return code;
        if (run->reply.item.type == RESP3_NULL)
                return EXIT_DONE; /* deleted since it was listed */
        if (run->reply.item.type != RESP3_BLOB)
                return session_print_unexpected_reply(&run->reply);

        buf_append_slice(&record.key, key);
        buf_append_slice(&record.value, run->reply.item.text);
        buf_append_slice(&record.version, session_reply_version(&run->reply));
        if (buf_failed(&record.key) || buf_failed(&record.value) || buf_failed(&record.version))
                return complain_of_memory();
        key_record_write(&record, &run->output);
        return EXIT_DONE;
}

enum exit_code command_export(struct command_run *run) {
        return scan(run, pattern_of(run), export_key);
}

static enum exit_code import_record(void *userdata, const struct key_record *record, int64_t now_ms) {
        struct command_run *run = userdata;
        struct session_request request = { 0 };
        char px[UINT64_DIGITS_MAX];
        enum exit_code code;

        session_request_add_string(&request, "SET");
        session_request_add(&request, buf_slice(&record->key));
        session_request_add(&request, buf_slice(&record->value));
        if (record->deadline_ms != KEY_RECORD_NO_DEADLINE)
                session_request_add_px(&request, record->deadline_ms - now_ms, px);

        if (record->token.length > 0) {
                buf_reset(&run->value);
                buf_append_slice(&run->value, buf_slice(&record->token));
                request.fence = buf_text(&run->value);
                if (!request.fence)
                        return complain_of_memory();
        }

        code = session_ask(run->session, &request, &run->reply);
        if (code != EXIT_DONE)
                complain("\"%s\" was not set; the import ends here", LOG_TEXT(buf_slice(&record->key)));
        return code;
}

enum exit_code command_import(struct command_run *run) {
        return input_import(run->options->words[0],
                            &(struct importer){ .import = import_record, .userdata = run });
}
