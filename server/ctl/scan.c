/* SPDX-License-Identifier: Apache-2.0 */

/* The commands for many keys: scan, and export and import through the broker. */

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/input.h"
#include "protocol/hlc.h"

/* The output is written when it exceeds this number of bytes. */
#define OUTPUT_BUFFERED_MAX 65536

/*
 * Called for each key. Appends its result to run->output. A result other than EXIT_DONE ends the
 * scan.
 */
typedef enum exit_code key_function(struct command_run *run, struct slice key);

/* What is done with the listed keys. */
struct listing {
        struct command_run *run;
        key_function *take;  /* with run->reply, if reads_keys */
        bool reads_keys;     /* send a GET for each key; take() is called with its reply */
        uint64_t n_vanished; /* keys that were deleted, or have expired, since they were listed */
};

/* Receive the reply to the oldest GET. A key without a value has vanished. */
static enum exit_code receive_key(struct listing *listing) {
        struct store_reply *reply = &listing->run->reply;
        enum exit_code code;

        if (store_client_receive(listing->run->client, reply) != CONNECTION_OK)
                return store_client_print_problem(listing->run->client);
        code = store_reply_read(reply);
        if (code != EXIT_DONE)
                return code;
        if (reply->item.type == RESP3_NULL) {
                listing->n_vanished++;
                return EXIT_DONE;
        }
        return reply->item.type == RESP3_BLOB ? listing->take(listing->run, buf_slice(&reply->key))
                                              : store_reply_print_unexpected(reply);
}

static enum exit_code take_key(struct listing *listing, struct slice key) {
        struct store_request request = store_request_make("GET", key);
        struct store_client *client = listing->run->client;
        enum exit_code code = EXIT_DONE;

        if (!listing->reads_keys)
                return listing->take(listing->run, key);

        while (code == EXIT_DONE && !store_client_has_room(client))
                code = receive_key(listing);
        if (code != EXIT_DONE)
                return code;
        request.wants_details = true;
        return store_client_send(client, &request) == CONNECTION_OK ? EXIT_DONE
                                                                    : store_client_print_problem(client);
}

static enum exit_code finish_keys(struct listing *listing) {
        enum exit_code code = EXIT_DONE;

        while (code == EXIT_DONE && store_client_is_waiting(listing->run->client))
                code = receive_key(listing);
        output_write(&listing->run->output);
        return code;
}

/* Take each key of the page. Sets *ret_token to the token of the next page; empty after the last one. */
static enum exit_code read_page(struct listing *listing, const struct store_reply *page,
                                struct buf *ret_token) {
        struct slice rest = page->rest;
        struct resp3_item keys, item;
        enum exit_code code = EXIT_DONE;

        if (page->item.type != RESP3_ARRAY || page->item.number < 1 || page->item.number > 2 ||
            resp3_read(&rest, &keys) < 0 || keys.type != RESP3_ARRAY)
                return store_reply_print_unexpected(page);

        for (int64_t i = 0; i < keys.number && code == EXIT_DONE && !output_has_failed(); i++) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB)
                        return store_reply_print_unexpected(page);
                code = take_key(listing, item.text);
                if (listing->run->output.length >= OUTPUT_BUFFERED_MAX)
                        output_write(&listing->run->output);
        }
        if (code == EXIT_DONE)
                code = finish_keys(listing);
        if (code != EXIT_DONE || output_has_failed())
                return code;

        buf_reset(ret_token);
        if (page->item.number == 2) {
                if (resp3_read(&rest, &item) < 0 || item.type != RESP3_BLOB || item.text.length == 0)
                        return store_reply_print_unexpected(page);
                buf_append_slice(ret_token, item.text);
        }
        return rest.length > 0 ? store_reply_print_unexpected(page) : EXIT_DONE;
}

/* Take each key that matches the pattern of the command. */
static enum exit_code scan_keys(struct listing *listing) {
        CLEANUP(store_reply_deinit) struct store_reply page = { 0 };
        CLEANUP(buf_deinit) struct buf token = { 0 };
        struct slice pattern = slice_from_string(listing->run->pattern);
        enum exit_code code;

        do {
                struct store_request request = store_request_make("SCAN", pattern);

                if (token.length > 0)
                        store_request_add(&request, buf_slice(&token));
                code = store_client_ask(listing->run->client, &request, &page);
                if (code == EXIT_DONE)
                        code = read_page(listing, &page, &token);
        } while (code == EXIT_DONE && token.length > 0 && !output_has_failed());
        return code;
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

/* 1. scan */

static void append_key(struct command_run *run, struct slice key) {
        const struct command_options *options = run->options;

        if (options->json && !options->hex) {
                append_json_key(&run->output, key);
        } else {
                buf_append_string(&run->output, options->json ? "\"" : "");
                output_append_text(&run->output, key, options->hex);
                buf_append_string(&run->output, options->json ? "\"" : "");
        }
}

static enum exit_code print_key(struct command_run *run, struct slice key) {
        append_key(run, key);
        buf_append_string(&run->output, "\n");
        return EXIT_DONE;
}

/* 59.9s, 59m59s, 1000h59m */
static void append_lifetime(struct buf *line, uint64_t lifetime_ms) {
        uint64_t s = lifetime_ms / 1000;

        if (s < 60)
                buf_append_format(line, "%.1fs", (double)lifetime_ms / 1000);
        else if (s < 3600)
                buf_append_format(line, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
        else
                buf_append_format(line, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
}

/* Append the wall clock of a version in UTC, or the version as it is if it has none. */
static void append_time(struct buf *line, struct slice version) {
        struct hlc hlc = { .wall_ms = -1 };

        hlc_parse(version, &hlc);
        if (!output_append_time(line, hlc.wall_ms))
                output_append_printable(line, version, false);
}

static void append_long_json(struct command_run *run, struct slice key) {
        struct buf *line = &run->output;

        json_begin(line);
        json_add_bytes(line, "key", key, run->options->hex);
        json_add_uint(line, "size", run->reply.item.text.length);
        store_reply_add_details(&run->reply, line);
        json_add_bytes(line, "version", store_reply_version(&run->reply), false);
        json_end(line);
}

static enum exit_code append_long(struct command_run *run, struct slice key) {
        struct buf *line = &run->output;
        struct key_details details;
        const char *none = store_reply_details(&run->reply, &details) ? "-" : "?";

        if (run->options->json) {
                append_long_json(run, key);
                return EXIT_DONE;
        }
        append_key(run, key);
        buf_append_format(line, "\t%zu\t", run->reply.item.text.length);
        if (details.expires_in_ms > 0)
                append_lifetime(line, details.expires_in_ms);
        else
                buf_append_string(line, none);
        buf_append_string(line, "\t");
        output_append_printable(line, details.fence.data ? details.fence : slice_from_string(none), false);
        buf_append_string(line, "\t");
        append_time(line, store_reply_version(&run->reply));
        buf_append_string(line, "\n");
        return EXIT_DONE;
}

enum exit_code command_scan(struct command_run *run) {
        /* A program that reads the lines needs no header; read_page() writes it with the first keys. */
        if (run->options->is_long && !run->options->json && isatty(STDOUT_FILENO))
                buf_append_string(&run->output, "KEY\tSIZE\tEXPIRES_IN\tTOKEN\tTIME\n");
        return scan_keys(&(struct listing){ .run = run,
                                            .take = run->options->is_long ? append_long : print_key,
                                            .reads_keys = run->options->is_long });
}

/* 2. export and import */

static enum exit_code append_exported(struct command_run *run, struct slice key) {
        CLEANUP(exported_key_deinit)
        struct exported_key exported = { .deadline_ms = EXPORTED_KEY_NO_DEADLINE };
        struct key_details details;

        buf_append_slice(&exported.key, key);
        buf_append_slice(&exported.value, run->reply.item.text);
        buf_append_slice(&exported.version, store_reply_version(&run->reply));
        exported.has_details = store_reply_details(&run->reply, &details);
        buf_append_slice(&exported.fence, details.fence);
        if (details.expires_in_ms > 0 &&
            __builtin_add_overflow(system_clock_wall_ms(), details.expires_in_ms, &exported.deadline_ms))
                exported.deadline_ms = EXPORTED_KEY_NO_DEADLINE;
        exported_key_write(&exported, &run->output);
        return EXIT_DONE;
}

enum exit_code command_export(struct command_run *run) {
        struct listing listing = { .run = run, .take = append_exported, .reads_keys = true };
        enum exit_code code = scan_keys(&listing);

        if (listing.n_vanished > 0)
                complain("%" PRIu64 " %s left out: deleted or expired since the store listed %s",
                         listing.n_vanished, listing.n_vanished == 1 ? "key was" : "keys were",
                         listing.n_vanished == 1 ? "it" : "them");
        return code;
}

/* Receive the reply to the oldest request. Only the first error of the import is printed. */
static enum exit_code receive_import(struct importer *importer) {
        struct command_run *run = importer->userdata;
        struct store_client *client = run->client;
        struct store_reply *reply = &run->reply;
        bool has_failed = importer->failed_line > 0;
        enum exit_code code;

        if (store_client_receive(client, reply) != CONNECTION_OK)
                code = has_failed ? EXIT_NO_REPLY : store_client_print_problem(client);
        else if (store_reply_is_ok(reply))
                code = EXIT_DONE;
        else if (has_failed)
                code = EXIT_STORE_ERROR;
        else
                code = store_reply_read(reply) ?: store_reply_print_unexpected(reply);

        importer->n_imported += code == EXIT_DONE;
        if (code != EXIT_DONE && !has_failed) {
                importer->failed_line = reply->line;
                buf_append_slice(&importer->failed_key, buf_slice(&reply->key));
        }
        return code;
}

static enum exit_code import_key(struct importer *importer, const struct exported_key *exported,
                                 int64_t now_ms) {
        struct store_request request = store_request_make("SET", buf_slice(&exported->key));
        struct command_run *run = importer->userdata;
        enum exit_code code = EXIT_DONE;

        while (code == EXIT_DONE && !store_client_has_room(run->client))
                code = receive_import(importer);
        if (code != EXIT_DONE)
                return code;

        request.line = importer->line;
        store_request_add(&request, buf_slice(&exported->value));
        if (exported->deadline_ms != EXPORTED_KEY_NO_DEADLINE)
                request.px_ms = exported->deadline_ms - now_ms;
        if (exported->fence.length > 0) {
                buf_reset(&run->value);
                buf_append_slice(&run->value, buf_slice(&exported->fence));
                request.fence = buf_text(&run->value);
        }
        if (exported->fence.length > 0 && !request.fence)
                return complain_of_memory();
        return store_client_send(run->client, &request) == CONNECTION_OK
                       ? EXIT_DONE
                       : store_client_print_problem(run->client);
}

/* Returns the first error. */
static enum exit_code receive_imports(struct importer *importer) {
        const struct command_run *run = importer->userdata;
        enum exit_code code = EXIT_DONE;

        while (store_client_is_waiting(run->client)) {
                enum exit_code received = receive_import(importer);

                code = code ?: received;
        }
        return code;
}

enum exit_code command_import(struct command_run *run) {
        struct importer importer = { .import = import_key, .finish = receive_imports, .userdata = run };

        return input_import(run->options->words[0], &importer, &run->output);
}
