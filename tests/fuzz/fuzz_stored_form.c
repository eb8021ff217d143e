/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored rows and headers. Arbitrary bytes are read safely, and only the bytes that the append function
 * makes are accepted. A row of arbitrary fields is read unchanged, and is refused without its
 * end.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "storage/etcd/header.h"
#include "storage/stored_form.h"
#include "support/result.h"

#define HEADER      N_ROW_TYPES
#define ETCD_HEADER (N_ROW_TYPES + 1)
#define N_KINDS     (N_ROW_TYPES + 2)

static int repeat_header(struct slice bytes, struct buf *buf) {
        struct state_header header;
        int r = stored_header_read(bytes, &header);

        if (r == 0)
                stored_header_append(buf, &header);
        return r;
}

static int repeat_etcd_header(struct slice bytes, struct buf *buf) {
        struct etcd_header header;
        uint32_t version = STORED_FORM_VERSION;
        int r = etcd_header_read(bytes, &header, &version);

        ASSERT((r == -EPROTONOSUPPORT) == (version != STORED_FORM_VERSION));
        if (r == 0)
                etcd_header_append(buf, &header);
        return r;
}

/*
 * Read a row, and append what was read. kind: the type of the row, HEADER, or ETCD_HEADER. Returns the
 * result of reading.
 */
static int repeat(size_t kind, struct slice bytes, struct buf *buf) {
        struct row row;
        int r;

        if (kind == HEADER)
                return repeat_header(bytes, buf);
        if (kind == ETCD_HEADER)
                return repeat_etcd_header(bytes, buf);
        r = stored_row_read(bytes, (enum row_type)kind, &row);
        if (r == 0)
                stored_row_append(buf, &row);
        return r;
}

static struct version make_version(struct slice *input) {
        struct version version = { .wall_ms = (int64_t)input_number(input, 6) };

        version.counter = (uint32_t)input_number(input, 4) & INT32_MAX;
        return version;
}

static struct state_header make_header(struct slice *input) {
        struct state_header stored = { .n_commits = input_number(input, 8),
                                       .node_id = "StateStore",
                                       .instance_id = "0123456789abcdef0123456789abcdef" };

        stored.digest_key.bytes[0] = input_byte(input);
        stored.token_key.box_key[0] = input_byte(input);
        stored.served_broker_run = input_number(input, 8);
        stored.clock = make_version(input);
        stored.keys_may_be_lost = input_chance(input, 50);
        stored.notification_sequence = input_number(input, 7);
        stored.reading_ms = (int64_t)input_number(input, 8);
        return stored;
}

static struct etcd_header make_etcd_header(struct slice *input) {
        struct etcd_header stored = {
                .state = make_header(input),
                .holder = { .term = 1, .name = "member", .lease_ns = ELECTION_LEASE_MIN_NS }
        };

        stored.acknowledged = input_number(input, 8);
        stored.last_reply = input_number(input, 8);
        stored.holder.member = input_number(input, 8);
        stored.holder.has_given_up = input_chance(input, 50);
        stored.holder.sent_ns = (int64_t)input_number(input, 7);
        stored.cluster = input_number(input, 8);
        return stored;
}

static struct row make_entry(struct slice *input) {
        struct row row = { .type = ROW_ENTRY,
                           .entry = { .key = input_text(input), .value = input_text(input) } };
        struct entry_row *entry = &row.entry;

        entry->version = make_version(input);
        entry->expires_at_ms = (int64_t)input_number(input, 8);
        entry->has_fence = input_chance(input, 50);
        if (entry->has_fence)
                entry->fence = (struct hlc){ (int64_t)input_number(input, 7), input_number(input, 8),
                                             SLICE_LITERAL("node") };
        return row;
}

static struct row make_registration(struct slice *input) {
        struct row row = { .type = ROW_REGISTRATION,
                           .registration = { .client = input_text(input), .key = input_text(input) } };
        struct registration_row *registration = &row.registration;

        if (registration->key.length == 0)
                registration->key = SLICE_LITERAL("key");
        registration->connection = input_number(input, 8);
        registration->user = input_text(input);
        return row;
}

static struct result make_result(struct slice *input) {
        enum outcome outcome = (enum outcome)input_below(input, N_OUTCOMES);
        struct result result;

        if (!outcome_is_in_result(outcome))
                outcome = OUTCOME_DONE; /* the others are never remembered */
        result = result_extreme(outcome);
        result.version = make_version(input);
        result.has_version = input_chance(input, 50);
        return result;
}

static struct row make_reply(struct slice *input) {
        struct row row = { .type = ROW_REPLY,
                           .reply = { .number = input_number(input, 7),
                                      .forget_at_ms = (int64_t)input_number(input, 8) } };

        row.reply.result = make_result(input);
        return row;
}

static struct row make_execution(struct slice *input) {
        struct row row = { .type = ROW_EXECUTION, .execution = { .number = 1 + input_number(input, 7) } };

        row.execution.result = make_result(input);
        return row;
}

static struct row make_notification(struct slice *input) {
        struct row row = { .type = ROW_NOTIFICATION,
                           .notification = { .version = make_version(input), .key = input_text(input) } };
        struct pending_notification *notification = &row.notification;

        notification->sequence = 1 + input_number(input, 7);
        if (notification->key.length == 0)
                notification->key = SLICE_LITERAL("key");
        if (input_chance(input, 70)) {
                notification->value = input_text(input);
                if (!notification->value.data)
                        notification->value = SLICE_LITERAL("");
        }
        notification->recipients = input_text(input);
        return row;
}

static struct row (*const make_row[N_ROW_TYPES])(struct slice *input) = {
        [ROW_ENTRY] = make_entry,         [ROW_REGISTRATION] = make_registration, [ROW_REPLY] = make_reply,
        [ROW_EXECUTION] = make_execution, [ROW_NOTIFICATION] = make_notification,
};

/* Append a row of arbitrary fields. */
static void make(size_t kind, struct slice *input, struct buf *buf) {
        struct etcd_header header;
        struct row row;

        if (kind < N_ROW_TYPES) {
                row = make_row[kind](input);
                stored_row_append(buf, &row);
                return;
        }
        header = make_etcd_header(input);
        if (kind == HEADER)
                stored_header_append(buf, &header.state);
        else
                etcd_header_append(buf, &header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(buf_deinit) struct buf made = { 0 }, repeated = { 0 };
        struct slice input = { data, size }, cut;
        size_t kind = input_below(&input, N_KINDS);
        int r;

        r = repeat(kind, input, &repeated);
        ASSERT(r < 0 || slice_equal(buf_slice(&repeated), input));

        make(kind, &input, &made);
        buf_reset(&repeated);
        ASSERT(repeat(kind, buf_slice(&made), &repeated) == 0);
        ASSERT(slice_equal(buf_slice(&repeated), buf_slice(&made)));

        buf_append(&made, "", 1);
        ASSERT(repeat(kind, buf_slice(&made), &repeated) == -EBADMSG);
        made.length--;

        cut = buf_slice(&made);
        cut.length -= 1 + input_below(&input, cut.length < 256 ? cut.length : 256);
        ASSERT(repeat(kind, cut, &repeated) == -EBADMSG);
        ASSERT(repeat((kind + 1) % N_KINDS, buf_slice(&made), &repeated) < 0);
        return 0;
}
