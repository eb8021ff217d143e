/* SPDX-License-Identifier: Apache-2.0 */

/* The command leader. */

#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/run.h"
#include "ctl/watcher.h"

struct leader {
        const struct command_options *options;
        struct slice key;
        struct watcher watcher;
        bool was_printed;
        bool exists;
        struct buf name; /* printed last */
};

static void append_leader(struct buf *line, const struct leader *leader, struct slice name,
                          struct slice version) {
        bool hex = leader->options->hex;

        if (leader->options->json) {
                json_begin(line);
                json_add_bytes(line, "key", leader->key, hex);
                json_add_bytes(line, "leader", name, hex);
                json_add_bytes(line, "version", version, false);
                json_end(line);
                return;
        }
        if (name.data)
                append_text(line, name, hex);
        else if (isatty(STDOUT_FILENO))
                buf_append_string(line, "(no leader)");
        buf_append_string(line, "\n");
}

/* Print the leader unless it was printed last. name absent: there is none. */
static void print_leader(struct leader *leader, struct slice name, struct slice version) {
        CLEANUP(buf_deinit) struct buf line = { 0 };

        /* A renewal of the lease sets the key to the same value. */
        if (leader->was_printed && leader->exists == !!name.data &&
            slice_equal(buf_slice(&leader->name), name))
                return;
        leader->was_printed = true;
        leader->exists = name.data;
        buf_reset(&leader->name);
        buf_append_slice(&leader->name, name);
        append_leader(&line, leader, name, version);
        output_write(&line);
        leader->watcher.is_done = output_has_failed();
}

static void leader_on_notification(void *userdata, const struct message *message) {
        struct watched_change change;

        if (watched_change_read(message, &change) == 0)
                print_leader(userdata, change.value, change.version);
}

static enum watcher_state get_leader(void *userdata) {
        CLEANUP(session_reply_deinit) struct session_reply reply = { 0 };
        struct session_request request = { 0 };
        struct leader *leader = userdata;
        enum watcher_state state;

        session_request_add_string(&request, "GET");
        session_request_add(&request, leader->key);
        state = watcher_ask(&leader->watcher, &request, &reply);
        if (state != WATCHER_REGISTERED)
                return state;
        if (reply.item.type != RESP3_BLOB && reply.item.type != RESP3_NULL)
                return watcher_end(&leader->watcher, session_print_unexpected_reply(&reply));
        if (reply.item.type == RESP3_BLOB || leader->options->watch || leader->options->json)
                print_leader(leader, reply.item.text, session_reply_version(&reply));
        else
                complain("\"%s\": no leader", LOG_TEXT(leader->key));
        leader->exists = reply.item.type == RESP3_BLOB;
        return WATCHER_REGISTERED;
}

static enum exit_code print_once(struct leader *leader) {
        enum watcher_state state = watcher_connect(&leader->watcher);

        if (state == WATCHER_REGISTERED)
                state = get_leader(leader);
        if (state == WATCHER_ENDED)
                return leader->watcher.exit_code;
        if (state == WATCHER_REGISTERED)
                return leader->exists ? EXIT_DONE : EXIT_NOT_MET;
        return session_print_problem(leader->watcher.session);
}

enum exit_code command_leader(struct command_run *run) {
        const struct command_options *options = run->options;
        struct leader leader = {
                .options = options,
                .key = run->key,
                .watcher = { .options = options,
                             .keys = run->keys,
                             .n_keys = 1,
                             .problem_note = "changes are being missed",
                             .registered = get_leader,
                             .userdata = &leader },
        };
        struct session_config config = { .options = options, .userdata = &leader };
        enum exit_code code;

        if (options->watch) {
                config.notification = leader_on_notification;
                config.interrupted = watcher_catch_signals();
                config.ends_with_stdout = true;
        }
        if (session_new(&leader.watcher.session, &config) < 0)
                return complain_of_memory();
        code = options->watch ? watcher_run(&leader.watcher, "watching the leader until interrupted")
                              : print_once(&leader);

        session_free(leader.watcher.session);
        buf_deinit(&leader.name);
        return code;
}
