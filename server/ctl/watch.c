/* SPDX-License-Identifier: Apache-2.0 */

/* The command watch. */

#include <stdio.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/run.h"
#include "ctl/watcher.h"

/* Read the key from the last level of the topic. */
static int read_key(struct slice topic, struct buf *key) {
        struct slice level;

        do {
                level = slice_split(topic, '/', &topic);
        } while (topic.data);
        return base16_append_decoded(key, level);
}

static const char *event_of(const struct watched_change *change) {
        return change->is_deleted ? "DELETE" : "SET";
}

static void append_json_change(struct buf *line, struct slice key, const struct watched_change *change,
                               bool hex) {
        json_begin(line);
        json_add_bytes(line, "event", slice_from_string(event_of(change)), false);
        json_add_bytes(line, "key", key, hex);
        if (!change->is_deleted)
                json_add_bytes(line, "value", change->value, hex);
        json_add_bytes(line, "version", change->version, false);
        json_end(line);
}

static void append_column(struct buf *line, struct slice bytes, bool hex) {
        buf_append_string(line, "\t");
        if (hex)
                base16_append(line, bytes);
        else
                append_printable(line, bytes, false);
}

static void append_text_change(struct buf *line, struct slice key, const struct watched_change *change,
                               bool hex) {
        buf_append_string(line, event_of(change));
        append_column(line, change->version.data ? change->version : SLICE_LITERAL("-"), false);
        append_column(line, key, hex);
        if (!change->is_deleted)
                append_column(line, change->value, hex);
        buf_append_string(line, "\n");
}

static void watch_on_notification(void *userdata, const struct message *message) {
        const struct command_options *options = userdata;
        CLEANUP(buf_deinit) struct buf line = { 0 };
        CLEANUP(buf_deinit) struct buf key = { 0 };
        struct watched_change change;

        if (read_key(message->topic, &key) < 0 || watched_change_read(message, &change) < 0) {
                complain("malformed notification: \"%s\"", LOG_TEXT(message->payload));
                return;
        }

        if (options->json)
                append_json_change(&line, buf_slice(&key), &change, options->hex);
        else
                append_text_change(&line, buf_slice(&key), &change, options->hex);
        output_write(&line);
}

enum exit_code command_watch(struct command_run *run) {
        const struct command_options *options = run->options;
        struct watcher watcher = { .options = options,
                                   .keys = run->keys,
                                   .n_keys = run->n_keys,
                                   .problem_note = "changes are being missed" };
        struct session_config config = { .options = options,
                                         .notification = watch_on_notification,
                                         .userdata = (void *)options,
                                         .interrupted = watcher_catch_signals(),
                                         .ends_with_stdout = true };
        enum exit_code code;
        char note[64];

        snprintf(note, sizeof(note), "watching %zu %s until interrupted", run->n_keys,
                 run->n_keys == 1 ? "key" : "keys");
        code = session_new(&watcher.session, &config) < 0 ? complain_of_memory()
                                                          : watcher_run(&watcher, note);
        session_free(watcher.session);
        return code;
}
