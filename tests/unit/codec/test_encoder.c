/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Encoding of replies and notifications: PROTOCOL.md "Replies", "Commands", "Errors",
 * "Notifications" and "Dialects".
 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "codec/encoder.h"
#include "support/result.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static struct encoder encoder;

static void setup_sdk(void) {
        encoder = (struct encoder){ .dialect = DIALECT_SDK, .node_id = S("StateStore") };
}

static void teardown(void) {
        encoder_deinit(&encoder);
}

TestSuite(encoder, .init = setup_sdk, .fini = teardown);

static bool has_property(const struct message *message, const char *name, struct slice value) {
        struct slice found = message_property(message, name);
        int n = 0;

        for (size_t i = 0; i < message->n_user_properties; i++)
                n += slice_equal(message->user_properties[i].name, slice_from_string(name));
        return n == 1 && slice_equal(found, value);
}

/* The payloads of results with extreme values. */
static const struct {
        const char *name;
        enum outcome outcome;
        struct slice sdk, document;
} texts[] = {
#define SAME(text) S(text), S(text)
        { "done", OUTCOME_DONE, SAME("+OK\r\n") },
        { "no value", OUTCOME_NO_VALUE, SAME("$-1\r\n") },
        { "deleted", OUTCOME_DELETED, SAME(":1\r\n") },
        { "nothing", OUTCOME_NOTHING, SAME(":0\r\n") },
        { "condition not met", OUTCOME_CONDITION_NOT_MET, S(":-1\r\n"), S("-1\r\n") },
        { "1", OUTCOME_SYNTAX_ERROR, SAME("-ERR syntax error\r\n") },
        { "2", OUTCOME_UNKNOWN_COMMAND, SAME("-ERR unknown command\r\n") },
        { "3", OUTCOME_WRONG_NUMBER_OF_ARGUMENTS, SAME("-ERR wrong number of arguments\r\n") },
        { "4", OUTCOME_EMPTY_KEY, SAME("-ERR the key length is zero\r\n") },
        { "6", OUTCOME_MISSING_TIMESTAMP, SAME("-ERR missing timestamp\r\n") },
        { "7", OUTCOME_MALFORMED_TIMESTAMP, SAME("-ERR malformed timestamp\r\n") },
        { "8", OUTCOME_TIMESTAMP_TOO_FAR,
          SAME("-ERR the request timestamp is too far in the future; ensure that the client and broker "
               "system "
               "clocks are synchronized\r\n") },
        { "9", OUTCOME_FENCE_TOO_FAR,
          SAME("-ERR the request fencing token timestamp is too far in the future; ensure that the client "
               "and "
               "broker system clocks are synchronized\r\n") },
        { "10", OUTCOME_NOT_AUTHORIZED, SAME("-ERR not authorized\r\n") },
        { "11", OUTCOME_FENCE_REQUIRED, SAME("-ERR a fencing token is required for this request\r\n") },
        { "12", OUTCOME_FENCE_TOO_OLD,
          S("-ERR the request fencing token is a lower version than the fencing token protecting the "
            "resource\r\n"),
          S("-ERR the request fencing token is a lower version that the fencing token protecting the "
            "resource\r\n") },
        { "console", OUTCOME_VERSION_CHANGED, SAME("-ERR the version has changed\r\n") },
        { "14", OUTCOME_QUOTA_EXCEEDED, SAME("-ERR the quota has been exceeded\r\n") },
        { "15", OUTCOME_VALUE_TOO_LARGE, SAME("-ERR the value is too large\r\n") },
        { "16", OUTCOME_REPLY_TOO_LARGE, SAME("-ERR the reply is too large\r\n") },
        { "key too long to notify", OUTCOME_KEY_TOO_LONG_TO_NOTIFY,
          SAME("-ERR the key is too long to be notified\r\n") },
        { "no client", OUTCOME_CLIENT_UNKNOWN, SAME("-ERR the client id is missing\r\n") },
        { "out of memory", OUTCOME_OUT_OF_MEMORY, SAME("-ERR out of memory\r\n") },
        { "disk full", OUTCOME_DISK_FULL, SAME("-ERR the disk is full\r\n") },
        { "storage", OUTCOME_STORAGE_FAILED, SAME("-ERR the storage has failed\r\n") },
};

Test(encoder, encodes_each_outcome_in_both_dialects) {
        for (size_t i = 0; i < N_ROWS(texts); i++) {
                struct reply reply = { .result = result_extreme(texts[i].outcome) };
                struct message message;

                for (enum dialect dialect = DIALECT_SDK; dialect <= DIALECT_DOCUMENT; dialect++) {
                        encoder.dialect = dialect;
                        cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0, ROW(texts, i));
                        cr_expect(slice_equal(message.payload,
                                              dialect == DIALECT_SDK ? texts[i].sdk : texts[i].document),
                                  ROW(texts, i));
                }
        }
}

Test(encoder, has_a_text_for_every_outcome) {
        bool is_tested[N_OUTCOMES] = { [OUTCOME_VALUE] = true, [OUTCOME_PAGE] = true };

        for (size_t i = 0; i < N_ROWS(texts); i++)
                is_tested[texts[i].outcome] = true;
        for (size_t i = 0; i < N_OUTCOMES; i++)
                cr_expect(is_tested[i], "outcome %zu", i);
}

Test(encoder, replies_with_status_200_also_for_errors) {
        for (size_t i = 0; i < N_ROWS(texts); i++) {
                struct reply reply = { .result.outcome = texts[i].outcome };
                struct message message;

                cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0, ROW(texts, i));
                cr_expect_eq(message.qos, 1, ROW(texts, i));
                cr_expect(has_property(&message, "__stat", S("200")), ROW(texts, i));
                cr_expect(has_property(&message, "__protVer", S("1.0")), ROW(texts, i));
                cr_expect(has_property(&message, "__srcId", S("StateStore")), ROW(texts, i));
                cr_expect_eq(message.n_user_properties, 3, ROW(texts, i));
                cr_expect_null(message.response_topic.data, ROW(texts, i));
        }
}

static const struct {
        const char *name;
        struct version version;
        struct slice sdk, document;
} versions[] = {
        { "the example of PROTOCOL.md",
          { 1696374425000, 0 },
          S("001696374425000:00000:StateStore"),
          S("1696374425000:0:StateStore") },
        { "a counter",
          { 1696374425000, 12 },
          S("001696374425000:00012:StateStore"),
          S("1696374425000:12:StateStore") },
        { "the largest counter",
          { 1, INT32_MAX - 1 },
          S("000000000000001:2147483646:StateStore"),
          S("1:2147483646:StateStore") },
        { "the largest wall clock",
          { INT64_MAX, 0 },
          S("9223372036854775807:00000:StateStore"),
          S("9223372036854775807:0:StateStore") },
};

Test(encoder, encodes_versions_with_the_node_id_of_the_store) {
        for (size_t i = 0; i < N_ROWS(versions); i++) {
                struct reply reply = { .result.outcome = OUTCOME_DONE,
                                       .result.has_version = true,
                                       .result.version = versions[i].version };
                struct message message;

                encoder.dialect = DIALECT_SDK;
                cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
                cr_expect(has_property(&message, "__ts", versions[i].sdk), ROW(versions, i));
                encoder.dialect = DIALECT_DOCUMENT;
                cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
                cr_expect(has_property(&message, "__ts", versions[i].document), ROW(versions, i));
        }
}

Test(encoder, encodes_lifetime_and_token_as_details) {
        const struct hlc token = { 1696374425000, 3, S("client-1") };
        struct reply reply = { .result.outcome = OUTCOME_VALUE, .has_details = true, .expires_in_ms = 2999 };
        struct message message;

        cr_assert_eq(entry_new(&reply.entry, S("k"), S("v"), (struct version){ 1, 2 }, &token), 0);
        for (int i = 0; i < 2; i++) {
                encoder.dialect = i == 0 ? DIALECT_SDK : DIALECT_DOCUMENT;
                cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
                cr_expect(has_property(&message, "details", S("1")));
                cr_expect(has_property(&message, "expires_in_ms", S("2999")));
                cr_expect(has_property(&message, "__ft",
                                       i == 0 ? S("001696374425000:00003:client-1")
                                              : S("1696374425000:3:client-1")));
        }
        reply.has_details = false;
        cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
        cr_expect_eq(message.n_user_properties, 3);
        reply_deinit(&reply);
}

Test(encoder, omits_a_lifetime_and_a_token_that_the_key_does_not_have) {
        struct reply reply = { .result.outcome = OUTCOME_VALUE, .has_details = true };
        struct message message;

        cr_assert_eq(entry_new(&reply.entry, S("k"), S("v"), (struct version){ 1, 2 }, NULL), 0);
        cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
        cr_expect(has_property(&message, "details", S("1")));
        cr_expect_eq(message.n_user_properties, 4);
        reply_deinit(&reply);
}

Test(encoder, omits_an_absent_version) {
        struct reply versioned = { .result = result_extreme(OUTCOME_DONE) }, reply = versioned;
        struct message message;

        reply.result.has_version = false;
        encoder_reply(&encoder, &versioned, &message);
        cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
        cr_expect_null(message_property(&message, "__ts").data);
}

static struct entry *make(struct slice key, struct slice value) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, key, value, (struct version){ 5, 6 }, NULL), 0);
        return entry;
}

static const struct {
        const char *name;
        struct slice value, reply, notification;
} values[] = {
        { "text", S("value"), S("$5\r\nvalue\r\n"),
          S("*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$5\r\nvalue\r\n") },
        { "empty", S(""), S("$0\r\n\r\n"),
          S("*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$0\r\n\r\n") },
        { "binary", S("\r\n\0\xFF"), S("$4\r\n\r\n\0\xFF\r\n"),
          S("*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$4\r\n\r\n\0\xFF\r\n") },
};

Test(encoder, encodes_the_value_of_a_get) {
        for (size_t i = 0; i < N_ROWS(values); i++) {
                struct reply reply = { .result.outcome = OUTCOME_VALUE,
                                       .result.has_version = true,
                                       .entry = make(S("k"), values[i].value) };
                struct message message;

                cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
                cr_expect(slice_equal(message.payload, values[i].reply), ROW(values, i));
                entry_unref(reply.entry);
        }
}

Test(encoder, notifies_of_a_set_with_value_and_version) {
        for (size_t i = 0; i < N_ROWS(values); i++) {
                struct message message;

                cr_assert_eq(encoder_notification(&encoder, (struct version){ 1696374425000, 3 },
                                                  values[i].value, &message),
                             0);
                cr_expect(slice_equal(message.payload, values[i].notification), ROW(values, i));
                cr_expect_eq(message.qos, 1);
                cr_expect(has_property(&message, "__ts", S("001696374425000:00003:StateStore")));
                cr_expect(has_property(&message, "__srcId", S("StateStore")));
                cr_expect(has_property(&message, "__protVer", S("1.0")));
                cr_expect_eq(message.n_user_properties, 3);
                cr_expect_null(message.response_topic.data);
                cr_expect_null(message.correlation_data.data);
        }
}

Test(encoder, notifies_of_a_deletion_in_both_dialects) {
        const struct version version = { 1, 2 };
        const struct slice none = { 0 };
        struct message message;

        cr_assert_eq(encoder_notification(&encoder, version, none, &message), 0);
        cr_expect(slice_equal(message.payload, S("*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n")));
        cr_expect(has_property(&message, "__ts", S("000000000000001:00002:StateStore")));

        encoder.dialect = DIALECT_DOCUMENT;
        cr_assert_eq(encoder_notification(&encoder, version, none, &message), 0);
        cr_expect(slice_equal(message.payload, S("*2\r\n$6\r\nNOTIFY\r\n$3\r\nDEL\r\n")));
        cr_expect(has_property(&message, "__ts", S("1:2:StateStore")));
}

#define TOKEN                                                                                               \
        "0123456789ABCDEF01234567012345670123456789ABCDEF"                                                  \
        "76543210FEDCBA987654321076543210FEDCBA9876543210"

static const struct {
        const char *name;
        struct slice keys[3];
        size_t n_keys;
        const char *token;
        struct slice payload;
} pages[] = {
        { "no keys", { { NULL, 0 } }, 0, NULL, S("*1\r\n*0\r\n") },
        { "one key", { S("a") }, 1, NULL, S("*1\r\n*1\r\n$1\r\na\r\n") },
        { "three keys",
          { S("a"), S("b\r\n"), S("\xC3\xA4") },
          3,
          NULL,
          S("*1\r\n*3\r\n$1\r\na\r\n$3\r\nb\r\n\r\n$2\r\n\xC3\xA4\r\n") },
        { "no keys and a token", { { NULL, 0 } }, 0, TOKEN, S("*2\r\n*0\r\n$96\r\n" TOKEN "\r\n") },
        { "a key and a token", { S("a") }, 1, TOKEN, S("*2\r\n*1\r\n$1\r\na\r\n$96\r\n" TOKEN "\r\n") },
};

Test(encoder, encodes_a_page_with_keys_and_token) {
        for (size_t i = 0; i < N_ROWS(pages); i++) {
                struct entry *entries[3];
                struct scan_page page = { .entries = entries, .n_entries = pages[i].n_keys };
                struct reply reply = { .result.outcome = OUTCOME_PAGE, .page = &page };
                struct message message;

                for (size_t j = 0; j < pages[i].n_keys; j++)
                        entries[j] = make(pages[i].keys[j], S("value"));
                page.has_next = pages[i].token;
                if (page.has_next)
                        memcpy(page.token, pages[i].token, SCAN_TOKEN_LENGTH);
                cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
                cr_expect(slice_equal(message.payload, pages[i].payload), ROW(pages, i));
                cr_expect_null(message_property(&message, "__ts").data, ROW(pages, i));
                for (size_t j = 0; j < pages[i].n_keys; j++)
                        entry_unref(entries[j]);
        }
}

static const struct {
        const char *name;
        enum request_fault fault;
        struct slice value, status, property;
        size_t n_properties;
} faults[] = {
        { "QoS", REQUEST_FAULT_QOS, S("0"), S("400"), S("QoS"), 6 },
        { "no correlation data", REQUEST_FAULT_CORRELATION, S(""), S("400"), S("Correlation Data"), 6 },
        { "version", REQUEST_FAULT_VERSION, S("2.0"), S("505"), S("__protVer"), 8 },
};

Test(encoder, names_the_invalid_property_of_a_request) {
        for (size_t i = 0; i < N_ROWS(faults); i++) {
                char text[] = "-ERR ";
                struct message message;
                struct slice said;

                cr_assert_eq(encoder_fault(&encoder, faults[i].fault, faults[i].value, &message), 0);
                cr_expect_eq(message.qos, 1, ROW(faults, i));
                cr_expect(has_property(&message, "__stat", faults[i].status), ROW(faults, i));
                cr_expect(has_property(&message, "__propName", faults[i].property), ROW(faults, i));
                cr_expect(has_property(&message, "__propVal", faults[i].value), ROW(faults, i));
                cr_expect(has_property(&message, "__protVer", S("1.0")), ROW(faults, i));
                cr_expect(has_property(&message, "__srcId", S("StateStore")), ROW(faults, i));
                cr_expect_null(message_property(&message, "__ts").data, ROW(faults, i));
                cr_expect_eq(message.n_user_properties, faults[i].n_properties, ROW(faults, i));

                /* the payload repeats the text, for clients that ignore properties */
                said = message_property(&message, "__stMsg");
                cr_expect_gt(said.length, 0, ROW(faults, i));
                cr_assert_eq(message.payload.length, strlen(text) + said.length + 2, ROW(faults, i));
                cr_expect(slice_starts_with(message.payload, slice_from_string(text)), ROW(faults, i));
                cr_expect_eq(memcmp(message.payload.data + strlen(text), said.data, said.length), 0,
                             ROW(faults, i));
                cr_expect_eq(memcmp(message.payload.data + message.payload.length - 2, "\r\n", 2), 0,
                             ROW(faults, i));
        }
}

Test(encoder, lists_the_served_versions) {
        struct message message;

        cr_assert_eq(encoder_fault(&encoder, REQUEST_FAULT_VERSION, S("7.1"), &message), 0);
        cr_expect(has_property(&message, "__supProtMajVer", S("0 1")));
        cr_expect(has_property(&message, "__requestProtVer", S("7.1")));
}

Test(encoder, terminates_properties_with_a_nul) {
        struct reply reply = { .result = { { 1, 2 }, OUTCOME_DONE, true } };
        struct slice value = { (const uint8_t *)"2.0garbage", 3 };
        struct message messages[2];

        memset(encoder.version, 'x', sizeof(encoder.version));
        cr_assert_eq(encoder_reply(&encoder, &reply, &messages[0]), 0);
        for (int i = 0; i < 2; i++) {
                for (size_t j = 0; j < messages[i].n_user_properties; j++) {
                        struct user_property *property = &messages[i].user_properties[j];

                        cr_expect_eq(property->name.data[property->name.length], 0);
                        cr_expect_eq(property->value.data[property->value.length], 0);
                }
                cr_assert_eq(encoder_fault(&encoder, REQUEST_FAULT_VERSION, value, &messages[1]), 0);
        }
}

Test(encoder, sends_its_node_id) {
        struct reply reply = { .result = { { 1, 2 }, OUTCOME_DONE, true } };
        struct message message;

        encoder.node_id = S("gateway-7");
        cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
        cr_expect(has_property(&message, "__srcId", S("gateway-7")));
        cr_expect(has_property(&message, "__ts", S("000000000000001:00002:gateway-7")));
}

Test(encoder, encodes_any_payload_as_a_reply) {
        struct message message;

        encoder_reply_payload(&encoder, S("{}"), &message);
        cr_expect(slice_equal(message.payload, S("{}")));
        cr_expect(has_property(&message, "__stat", S("200")));
        cr_expect(has_property(&message, "__srcId", S("StateStore")));
        cr_expect_null(message_property(&message, "__ts").data);
}

Test(encoder, gives_the_text_of_an_error_without_resp3) {
        cr_expect(slice_equal(encoder_error_text(OUTCOME_SYNTAX_ERROR), S("syntax error")));
        cr_expect(slice_equal(encoder_error_text(OUTCOME_STORAGE_FAILED), S("the storage has failed")));
}
