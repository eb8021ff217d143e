/* SPDX-License-Identifier: Apache-2.0 */

/* The command watch. */

#include <stdio.h>
#include <stdlib.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/watcher.h"
#include "protocol/hlc.h"

/* Read the key from the last level of the topic. */
static int read_watched_key(struct slice topic, struct buf *key) {
        struct slice level;

        do {
                level = slice_split(topic, '/', &topic);
        } while (topic.data);
        return base16_append_decoded(key, level);
}

static const char *event_name(const struct watched_change *change) {
        return change->is_deleted ? "DELETE" : "SET";
}

static void append_json_change(struct buf *line, struct slice key, const struct watched_change *change,
                               bool hex) {
        json_begin(line);
        json_add_bytes(line, "event", slice_from_string(event_name(change)), false);
        json_add_bytes(line, "key", key, hex);
        if (!change->is_deleted)
                json_add_bytes(line, "value", change->value, hex);
        json_add_bytes(line, "version", change->version, false);
        json_end(line);
}

static void append_column(struct buf *line, struct slice bytes, bool hex) {
        buf_append_string(line, "\t");
        output_append_text(line, bytes, hex);
}

static void append_text_change(struct buf *line, struct slice key, const struct watched_change *change,
                               bool hex) {
        buf_append_string(line, event_name(change));
        append_column(line, change->version.data ? change->version : SLICE_LITERAL("-"), false);
        append_column(line, key, hex);
        if (!change->is_deleted)
                append_column(line, change->value, hex);
        buf_append_string(line, "\n");
}

/* What was printed last for a key; with --initial. */
struct printed {
        struct buf version; /* empty: nothing was printed */
        bool exists;
        bool is_notified; /* since the last GET was sent */
};

struct watch {
        const struct command_run *run;
        struct printed *printed; /* for each of run->keys */
        struct watcher watcher;
        uint64_t n_lines;
};

/* Return the entry of the first of run->keys that is equal; NULL: there is none. */
static struct printed *find_printed_key(const struct watch *watch, struct slice key) {
        for (size_t i = 0; i < watch->run->n_keys; i++)
                if (slice_equal(buf_slice(&watch->run->keys[i]), key))
                        return &watch->printed[i];
        return NULL;
}

/* The version of a deletion is that of the deleted value. */
static bool is_newer_change(const struct printed *printed, const struct watched_change *change) {
        struct hlc last, version;
        int order;

        if (hlc_parse(buf_slice(&printed->version), &last) < 0 || hlc_parse(change->version, &version) < 0)
                return true;
        order = hlc_compare(version, last);
        return order > 0 || (order == 0 && change->is_deleted && printed->exists);
}

static void print_change(struct watch *watch, struct slice key, const struct watched_change *change,
                         struct printed *printed) {
        const struct command_options *options = watch->run->options;
        CLEANUP(buf_deinit) struct buf line = { 0 };

        if (watch->watcher.is_done)
                return;
        if (options->json)
                append_json_change(&line, key, change, options->hex);
        else
                append_text_change(&line, key, change, options->hex);
        output_write(&line);
        watch->watcher.is_done = ++watch->n_lines == options->count || output_has_failed();
        if (!printed)
                return;

        printed->exists = !change->is_deleted;
        if (change->version.data == printed->version.data)
                return;
        buf_reset(&printed->version);
        buf_append_slice(&printed->version, change->version);
}

static void watch_on_notification(void *userdata, const struct message *message) {
        struct watch *watch = userdata;
        CLEANUP(buf_deinit) struct buf key = { 0 };
        struct printed *printed = NULL;
        struct watched_change change;

        if (read_watched_key(message->topic, &key) < 0 || watched_change_read(message, &change) < 0) {
                complain("malformed notification: \"%s\"", LOG_TEXT(message->payload));
                return;
        }

        if (watch->run->options->initial)
                printed = find_printed_key(watch, buf_slice(&key));
        if (printed)
                printed->is_notified = true;
        if (!printed || is_newer_change(printed, &change))
                print_change(watch, buf_slice(&key), &change, printed);
}

/*
 * Print the present value of a key unless it was printed last. If a notification has arrived since
 * the request was sent, the reply may be older: it then counts only if its version is newer. Without
 * one it counts whatever its version: a store without its former data may have an earlier clock.
 */
static enum connection_result print_present_value(struct watch *watch, struct slice key) {
        CLEANUP(store_reply_deinit) struct store_reply reply = { 0 };
        struct store_request request = store_request_make("GET", key);
        struct printed *printed = find_printed_key(watch, key);
        struct watched_change change;
        enum connection_result result;
        bool is_same;

        printed->is_notified = false;
        result = watcher_ask(&watch->watcher, &request, &reply);
        if (result != CONNECTION_OK)
                return result;
        if (reply.item.type != RESP3_BLOB && reply.item.type != RESP3_NULL)
                return watcher_end(&watch->watcher, store_reply_print_unexpected(&reply));

        change = (struct watched_change){ reply.item.type == RESP3_NULL, reply.item.text,
                                          store_reply_version(&reply) };
        if (change.is_deleted)
                change.version = buf_slice(&printed->version);
        is_same = printed->exists == !change.is_deleted &&
                  (change.is_deleted || slice_equal(buf_slice(&printed->version), change.version));
        if (printed->is_notified ? !change.is_deleted && is_newer_change(printed, &change) : !is_same)
                print_change(watch, key, &change, printed);
        if (change.is_deleted && !printed->is_notified)
                buf_reset(&printed->version);
        return CONNECTION_OK;
}

static enum connection_result watch_on_registered(void *userdata) {
        struct watch *watch = userdata;
        size_t n_keys = watch->run->options->initial ? watch->run->n_keys : 0;
        enum connection_result result = CONNECTION_OK;

        for (size_t i = 0; i < n_keys && result == CONNECTION_OK && !watch->watcher.is_done; i++)
                result = print_present_value(watch, buf_slice(&watch->run->keys[i]));
        return result;
}

/* Whether the key has a wildcard of a pattern, or one of MQTT. */
static bool resembles_pattern(struct slice key) {
        struct slice level;

        for (size_t i = 0; i < key.length; i++)
                if (memchr("*?[", key.data[i], 3))
                        return true;
        do {
                level = slice_split(key, '/', &key);
                if (slice_equal_string(level, "+") || slice_equal_string(level, "#"))
                        return true;
        } while (key.data);
        return false;
}

static enum exit_code run_watch(struct watch *watch) {
        const struct command_run *run = watch->run;
        struct store_client_config config = { .options = run->options,
                                              .notification = watch_on_notification,
                                              .userdata = watch,
                                              .ends_with_stdout = true };
        enum exit_code code;
        char note[64];

        snprintf(note, sizeof(note), "watching %zu %s%s", run->n_keys, run->n_keys == 1 ? "key" : "keys",
                 run->options->count > 0 ? "" : " until interrupted");
        code = store_client_new(&watch->watcher.client, &config) < 0 ? complain_of_memory()
                                                                     : watcher_run(&watch->watcher, note);
        store_client_free(watch->watcher.client);
        return code;
}

enum exit_code command_watch(struct command_run *run) {
        struct watch watch = { .run = run,
                               .printed = calloc(run->n_keys, sizeof(*watch.printed)),
                               .watcher = { .options = run->options,
                                            .keys = run->keys,
                                            .n_keys = run->n_keys,
                                            .problem_note = "changes are being missed",
                                            .registered = watch_on_registered,
                                            .userdata = &watch } };
        enum exit_code code;

        for (size_t i = 0; i < run->n_keys; i++)
                if (resembles_pattern(buf_slice(&run->keys[i])))
                        complain("\"%s\": watch takes no patterns; it watches the key with this name",
                                 LOG_TEXT(buf_slice(&run->keys[i])));
        code = watch.printed ? run_watch(&watch) : complain_of_memory();
        for (size_t i = 0; watch.printed && i < run->n_keys; i++)
                buf_deinit(&watch.printed[i].version);
        free(watch.printed);
        return code;
}
