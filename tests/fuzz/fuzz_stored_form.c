/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored records. Arbitrary bytes are read safely, and only the bytes that the append function
 * makes are accepted. A record of arbitrary fields is read unchanged, and is refused without its
 * end.
 */

#include <errno.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "storage/stored_form.h"

/* Read a record, and append what was read. Returns the result of reading. */
static int repeat_header(struct slice record, struct buf *buf) {
        struct state_header stored;
        int r = stored_header_read(record, &stored);

        if (r == 0)
                stored_header_append(buf, &stored);
        return r;
}

static int repeat_registration(struct slice record, struct buf *buf) {
        struct registration_change stored;
        int r = stored_registration_read(record, &stored);

        if (r == 0)
                stored_registration_append(buf, &stored);
        return r;
}

static int repeat_reply(struct slice record, struct buf *buf) {
        struct reply_change stored;
        int r = stored_reply_read(record, &stored);

        if (r == 0)
                stored_reply_append(buf, &stored);
        return r;
}

static int repeat_execution(struct slice record, struct buf *buf) {
        struct execution_row stored;
        int r = stored_execution_read(record, &stored);

        if (r == 0)
                stored_execution_append(buf, &stored);
        return r;
}

static int repeat_notification(struct slice record, struct buf *buf) {
        struct pending_notification stored;
        int r = stored_notification_read(record, &stored);

        if (r == 0)
                stored_notification_append(buf, &stored);
        return r;
}

static int (*const repeat[])(struct slice record, struct buf *buf) = {
        repeat_header, repeat_registration, repeat_reply, repeat_execution, repeat_notification,
};

static struct version make_version(struct slice *input) {
        struct version version = { .wall_ms = (int64_t)input_number(input, 6) };

        version.counter = (uint32_t)input_number(input, 4) & INT32_MAX;
        return version;
}

static void make_header(struct slice *input, struct buf *buf) {
        struct state_header stored = { .n_commits = input_number(input, 8),
                                       .node_id = "StateStore",
                                       .instance_id = "0123456789abcdef0123456789abcdef" };

        stored.digest_key.bytes[0] = input_byte(input);
        stored.token_key.box_key[0] = input_byte(input);
        stored.clock = make_version(input);
        stored.keys_may_be_lost = input_chance(input, 50);
        stored.notification_sequence = input_number(input, 7);
        stored.reading_ms = (int64_t)input_number(input, 8);
        stored_header_append(buf, &stored);
}

static void make_registration(struct slice *input, struct buf *buf) {
        struct registration_change stored = { .client = input_text(input), .key = input_text(input) };

        if (stored.key.length == 0)
                stored.key = SLICE_LITERAL("key");
        stored.connection = input_number(input, 8);
        stored.user = input_text(input);
        stored_registration_append(buf, &stored);
}

static void make_reply(struct slice *input, struct buf *buf) {
        struct reply_change stored = { .forget_at_ms = (int64_t)input_number(input, 8) };
        struct version version = make_version(input);

        stored.result.outcome = input_below(input, N_OUTCOMES);
        if (!outcome_is_in_result(stored.result.outcome))
                stored.result.outcome = OUTCOME_DONE; /* the others are never remembered */
        stored.result.has_version = input_chance(input, 50);
        stored.result.version = version;
        stored_reply_append(buf, &stored);
}

static void make_execution(struct slice *input, struct buf *buf) {
        struct execution_row stored = { .after = { .id = { .broker_run = input_number(input, 8) } } };
        struct version version = make_version(input);

        stored.after.id.number = 1 + input_number(input, 7);
        stored.after.order = input_number(input, 8);
        stored.after.result.outcome = OUTCOME_DELETED;
        stored.after.result.has_version = input_chance(input, 50);
        stored.after.result.version = version;
        stored_execution_append(buf, &stored);
}

static void make_notification(struct slice *input, struct buf *buf) {
        struct pending_notification stored = { .version = make_version(input), .key = input_text(input) };

        if (stored.key.length == 0)
                stored.key = SLICE_LITERAL("key");
        if (input_chance(input, 70)) {
                stored.value = input_text(input);
                if (!stored.value.data)
                        stored.value = SLICE_LITERAL("");
        }
        stored.recipients = input_text(input);
        stored_notification_append(buf, &stored);
}

static void (*const make[])(struct slice *input, struct buf *buf) = {
        make_header, make_registration, make_reply, make_execution, make_notification,
};
#define N_KINDS ARRAY_LENGTH(make)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(buf_deinit) struct buf made = { 0 }, repeated = { 0 };
        struct slice input = { data, size }, cut;
        size_t kind = input_below(&input, N_KINDS);
        int r;

        r = repeat[kind](input, &repeated);
        ASSERT(r == -EBADMSG || (r == 0 && slice_equal(buf_slice(&repeated), input)));

        make[kind](&input, &made);
        buf_reset(&repeated);
        ASSERT(repeat[kind](buf_slice(&made), &repeated) == 0);
        ASSERT(slice_equal(buf_slice(&repeated), buf_slice(&made)));

        buf_append(&made, "", 1);
        ASSERT(repeat[kind](buf_slice(&made), &repeated) == -EBADMSG);
        made.length--;

        cut = buf_slice(&made);
        cut.length -= 1 + input_below(&input, cut.length < 256 ? cut.length : 256);
        ASSERT(repeat[kind](cut, &repeated) == -EBADMSG);
        ASSERT(repeat[(kind + 1) % N_KINDS](buf_slice(&made), &repeated) == -EBADMSG);
        return 0;
}
