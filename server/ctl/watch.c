/* SPDX-License-Identifier: Apache-2.0 */

/* The command watch. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/input.h"
#include "ctl/run.h"
#include "ctl/watcher.h"

struct watch {
        const struct command_options *options;
        struct buf *keys;
        size_t n_keys;
};

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
        const struct command_options *options = ((const struct watch *)userdata)->options;
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

static int read_keys(struct watch *watch) {
        const struct command_options *options = watch->options;
        int r = 0;

        watch->keys = calloc(options->n_words + 1, sizeof(*watch->keys));
        if (!watch->keys)
                return -ENOMEM;

        if (options->key_file)
                r = input_read_file(options->key_file, &watch->keys[watch->n_keys++]);
        for (size_t i = 0; i < options->n_words && r == 0; i++)
                r = input_read_word(options->words[i], options->hex, &watch->keys[watch->n_keys++]);
        return r;
}

enum exit_code command_watch(struct command_run *run) {
        const struct command_options *options = run->options;
        struct watch watch = { .options = options };
        struct watcher watcher = { .options = options, .problem_note = "changes are being missed" };
        struct session_config config = { .options = options,
                                         .notification = watch_on_notification,
                                         .userdata = &watch,
                                         .interrupted = watcher_catch_signals(),
                                         .ends_with_stdout = true };
        enum exit_code code = EXIT_USAGE;
        char note[64];

        if (read_keys(&watch) == 0) {
                watcher.keys = watch.keys;
                watcher.n_keys = watch.n_keys;
                snprintf(note, sizeof(note), "watching %zu %s until interrupted", watch.n_keys,
                         watch.n_keys == 1 ? "key" : "keys");
                code = session_new(&watcher.session, &config) < 0 ? complain_of_memory()
                                                                  : watcher_run(&watcher, note);
        }

        session_free(watcher.session);
        for (size_t i = 0; i < watch.n_keys; i++)
                buf_deinit(&watch.keys[i]);
        free(watch.keys);
        return code;
}
