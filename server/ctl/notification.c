/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/notification.h"

#include <errno.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/output.h"
#include "ctl/session.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"

#define WORDS_MAX 4

struct printed_change {
        const char *event;
        struct buf key;
        struct slice value; /* data NULL: deleted */
        struct slice version;
};

static void deinit_change(struct printed_change *change) {
        buf_deinit(&change->key);
}

/* The key stands in the topic's last level. */
static int read_key(struct slice topic, struct buf *key) {
        struct slice level;

        do {
                level = slice_split(topic, '/', &topic);
        } while (topic.data);
        return base16_append_decoded(key, level);
}

static int read_change(const struct message *message, struct printed_change *change) {
        struct slice words[WORDS_MAX];
        size_t n_words;
        int r;

        r = read_key(message->topic, &change->key);
        if (r < 0)
                return r;
        r = resp3_read_request(message->payload, words, WORDS_MAX, &n_words);
        if (r < 0)
                return r;

        change->version = message_property(message, PROPERTY_TIMESTAMP);
        if (n_words == 4 && slice_equal(words[0], SLICE_LITERAL("NOTIFY")) &&
            slice_equal(words[1], SLICE_LITERAL("SET")) && slice_equal(words[2], SLICE_LITERAL("VALUE"))) {
                change->event = "SET";
                change->value = words[3];
                return 0;
        }
        /* DEL: the document dialect's */
        if (n_words == 2 && slice_equal(words[0], SLICE_LITERAL("NOTIFY")) &&
            (slice_equal(words[1], SLICE_LITERAL("DELETE")) ||
             slice_equal(words[1], SLICE_LITERAL("DEL")))) {
                change->event = "DELETE";
                return 0;
        }
        return -EBADMSG;
}

static void append_json(struct buf *line, const struct printed_change *change, bool hex) {
        json_begin(line);
        json_add_bytes(line, "event", slice_from_string(change->event), false);
        json_add_bytes(line, "key", buf_slice(&change->key), hex);
        if (change->value.data)
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

static void append_text(struct buf *line, const struct printed_change *change, bool hex) {
        buf_append_string(line, change->event);
        append_column(line, change->version.data ? change->version : SLICE_LITERAL("-"), false);
        append_column(line, buf_slice(&change->key), hex);
        if (change->value.data)
                append_column(line, change->value, hex);
        buf_append_string(line, "\n");
}

void notification_print(const struct options *options, const struct message *message) {
        CLEANUP(deinit_change) struct printed_change change = { 0 };
        CLEANUP(buf_deinit) struct buf line = { 0 };

        if (read_change(message, &change) < 0) {
                complain("a notification that is none: \"%s\"", LOG_TEXT(message->payload));
                return;
        }

        if (options->json)
                append_json(&line, &change, options->hex);
        else
                append_text(&line, &change, options->hex);
        output_write(&line);
}
