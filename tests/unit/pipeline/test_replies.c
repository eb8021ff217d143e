/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Commands" and "Errors": requests and their replies through the whole pipeline. */

#include <errno.h>

#include "unit/pipeline/fake_broker.h"
#include "unit/support/table.h"

#define LOW_FENCE "40:0:m"
#define FENCE     "50:0:m"
#define FAR       "1696374485001:0:m" /* a minute and a millisecond ahead */
#define MINUTE    "1696374485000:0:m"

static struct broker broker;

/* "k" and "f" have the value "v", "f" is fenced, and the quota is used up. */
static void setup(void) {
        struct engine_config engine = broker_engine_config();

        engine.limits.max_keys = 2;
        broker_init_engine(&broker, broker_config(), engine);
        broker_do(&broker, "SET k v");
        cr_assert(broker_replies_with(&broker,
                                      (struct sending){ WORDS(S("SET"), S("f"), S("v")), .fence = S(FENCE) },
                                      S("+OK\r\n")));
        broker_forget(&broker);
}

static void teardown(void) {
        broker_deinit(&broker);
}

static const struct {
        const char *name;
        struct sending sending;
        struct slice payload;
        enum { NO_VERSION, STORED, NEW } version;
} rows[] = {
        { "SET done", { WORDS(S("SET"), S("k"), S("w")) }, S("+OK\r\n"), NEW },
        { "NX not met", { WORDS(S("SET"), S("k"), S("w"), S("NX")) }, S(":-1\r\n"), STORED },
        { "NEX not met", { WORDS(S("SET"), S("k"), S("w"), S("NEX")) }, S(":-1\r\n"), STORED },
        { "NEX met", { WORDS(S("SET"), S("k"), S("w"), S("NEX"), S("v")) }, S("+OK\r\n"), NEW },
        { "GET found", { WORDS(S("GET"), S("k")) }, S("$1\r\nv\r\n"), STORED },
        { "GET not found", { WORDS(S("GET"), S("none")) }, S("$-1\r\n"), NO_VERSION },
        { "DEL deleted", { WORDS(S("DEL"), S("k")) }, S(":1\r\n"), STORED },
        { "DEL not found", { WORDS(S("DEL"), S("none")) }, S(":0\r\n"), NO_VERSION },
        { "VDEL deleted", { WORDS(S("VDEL"), S("k"), S("v")) }, S(":1\r\n"), STORED },
        { "VDEL not found", { WORDS(S("VDEL"), S("none"), S("v")) }, S(":0\r\n"), NO_VERSION },
        { "VDEL value differs", { WORDS(S("VDEL"), S("k"), S("w")) }, S(":-1\r\n"), STORED },
        { "KEYNOTIFY", { WORDS(S("KEYNOTIFY"), S("k")), .source = S("c") }, S("+OK\r\n"), NEW },
        { "KEYNOTIFY STOP of nothing",
          { WORDS(S("KEYNOTIFY"), S("k"), S("STOP")), .source = S("c") },
          S(":0\r\n"),
          NO_VERSION },
        { "SCAN", { WORDS(S("SCAN"), S("k*")) }, S("*1\r\n*1\r\n$1\r\nk\r\n"), NO_VERSION },
        { "SCAN of nothing", { WORDS(S("SCAN"), S("x*")) }, S("*1\r\n*0\r\n"), NO_VERSION },
};

Test(replies, reply_matches_the_table_of_commands) {
        for (size_t i = 0; i < N_ROWS(rows); i++) {
                const struct message *stored, *reply;
                struct slice version;

                setup();
                stored = broker_ask(&broker, (struct sending){ WORDS(S("GET"), S("k")) });
                broker_pass_ms(&broker, 10);
                reply = broker_ask(&broker, rows[i].sending);
                version = message_property(reply, "__ts");
                cr_expect(slice_equal(reply->payload, rows[i].payload), ROW(rows, i));
                cr_expect(slice_equal(message_property(reply, "__stat"), S("200")), ROW(rows, i));
                if (rows[i].version == NO_VERSION)
                        cr_expect_null(version.data, ROW(rows, i));
                if (rows[i].version == STORED)
                        cr_expect(slice_equal(version, message_property(stored, "__ts")), ROW(rows, i));
                if (rows[i].version == NEW)
                        cr_expect(slice_equal(version, S("001696374425010:00000:StateStore")), ROW(rows, i));
                teardown();
        }
}

#define TOO_FAR " is too far in the future; ensure that the client and broker system clocks are synchronized"

#define ERR(text)  S("-ERR " text "\r\n")
#define SET_K      S("SET"), S("k"), S("w")
#define SET_F      S("SET"), S("f"), S("a longer value")
#define BAD_OPTION S("XX")

/* Each request fails its own check and some of the later ones. */
static const struct {
        const char *name;
        struct sending sending;
        struct slice payload;
} checks[] = {
        { "1: payload syntax, then verb and timestamp",
          { .payload = S("*1\r\n$3\r\nset\r\n "), .timestamp = S("x") },
          ERR("syntax error") },
        { "2: verb, then number, key and timestamp",
          { WORDS(S("set"), S("")), .timestamp = S("x") },
          ERR("unknown command") },
        { "3: number, then key and timestamp",
          { WORDS(S("SET"), S("")), .timestamp = S("x") },
          ERR("wrong number of arguments") },
        { "3: too many, then key", { WORDS(S("GET"), S(""), S("")) }, ERR("wrong number of arguments") },
        { "4: key, then options and no timestamp",
          { WORDS(S("SET"), S(""), S("v"), BAD_OPTION), .no_timestamp = true },
          ERR("the key length is zero") },
        { "5: options, then no timestamp and token",
          { WORDS(SET_K, BAD_OPTION), .no_timestamp = true, .fence = S("x") },
          ERR("syntax error") },
        { "6: no timestamp, then token",
          { WORDS(SET_K), .no_timestamp = true, .fence = S("x") },
          ERR("missing timestamp") },
        { "7: timestamp, then token too far",
          { WORDS(SET_K), .timestamp = S("x"), .fence = S(FAR) },
          ERR("malformed timestamp") },
        { "7: token, then timestamp too far",
          { WORDS(SET_K), .timestamp = S(FAR), .fence = S("x") },
          ERR("malformed timestamp") },
        { "8: timestamp too far, then token too far",
          { WORDS(SET_K), .timestamp = S(FAR), .fence = S(FAR) },
          ERR("the request timestamp" TOO_FAR) },
        { "8: timestamp too far, then fenced",
          { WORDS(SET_F), .timestamp = S(FAR) },
          ERR("the request timestamp" TOO_FAR) },
        { "8: a timestamp exactly a minute ahead passes",
          { WORDS(SET_K), .timestamp = S(MINUTE) },
          S("+OK\r\n") },
        { "9: token too far, then condition",
          { WORDS(SET_F, S("NX")), .fence = S(FAR) },
          ERR("the request fencing token timestamp" TOO_FAR) },
        { "9: a token exactly a minute ahead passes",
          { WORDS(S("SET"), S("f"), S("w")), .fence = S(MINUTE) },
          S("+OK\r\n") },
        { "11: fenced, then condition",
          { WORDS(SET_F, S("NX")) },
          ERR("a fencing token is required for this request") },
        { "11: fenced, DEL",
          { WORDS(S("DEL"), S("f")) },
          ERR("a fencing token is required for this request") },
        { "11: fenced, VDEL, then condition",
          { WORDS(S("VDEL"), S("f"), S("w")) },
          ERR("a fencing token is required for this request") },
        { "12: older token, then condition",
          { WORDS(SET_F, S("NX")), .fence = S(LOW_FENCE) },
          ERR("the request fencing token is a lower version than the fencing token protecting the "
              "resource") },
        { "12: older token, VDEL, then condition",
          { WORDS(S("VDEL"), S("f"), S("w")), .fence = S(LOW_FENCE) },
          ERR("the request fencing token is a lower version than the fencing token protecting the "
              "resource") },
        { "13: condition", { WORDS(SET_F, S("NX")), .fence = S(FENCE) }, S(":-1\r\n") },
        { "14: quota",
          { WORDS(S("SET"), S("new"), S("v"), S("NX")), .fence = S(FENCE) },
          ERR("the quota has been exceeded") },
        { "KEYNOTIFY without client id",
          { WORDS(S("KEYNOTIFY"), S("k")) },
          ERR("the client id is missing") },
        { "SCAN of a foreign token", { WORDS(S("SCAN"), S("*"), S("x")) }, ERR("syntax error") },
};

Test(replies, error_names_the_first_failing_check) {
        for (size_t i = 0; i < N_ROWS(checks); i++) {
                const struct message *reply;

                setup();
                reply = broker_ask(&broker, checks[i].sending);
                cr_expect(slice_equal(reply->payload, checks[i].payload), "row %zu: %s: %.*s", i,
                          checks[i].name, (int)reply->payload.length, (const char *)reply->payload.data);
                cr_expect(slice_equal(message_property(reply, "__stat"), S("200")), ROW(checks, i));
                if (reply->payload.data[0] == '-')
                        cr_expect_null(message_property(reply, "__ts").data, ROW(checks, i));
                teardown();
        }
}

static const struct {
        const char *name;
        struct sending sending;
        struct slice status;
        const char *property;
} reply_addresses[] = {
        { "QoS 0", { WORDS(SET_K), .has_qos = true, .qos = 0 }, S("400"), "QoS" },
        { "QoS 2", { WORDS(SET_K), .has_qos = true, .qos = 2 }, S("400"), "QoS" },
        { "no correlation data", { WORDS(SET_K), .no_correlation = true }, S("400"), "Correlation Data" },
        { "an unsupported protocol version", { WORDS(SET_K), .version = S("2.0") }, S("505"), "__protVer" },
        { "QoS, before payload syntax", { .payload = S("x"), .has_qos = true }, S("400"), "QoS" },
};

Test(replies, message_properties_are_checked_before_the_payload) {
        for (size_t i = 0; i < N_ROWS(reply_addresses); i++) {
                const struct message *reply;

                setup();
                reply = broker_ask(&broker, reply_addresses[i].sending);
                cr_expect(slice_equal(message_property(reply, "__stat"), reply_addresses[i].status),
                          ROW(reply_addresses, i));
                cr_expect(slice_equal(message_property(reply, "__propName"),
                                      slice_from_string(reply_addresses[i].property)),
                          ROW(reply_addresses, i));
                cr_expect_eq(!reply->correlation_data.data, reply_addresses[i].sending.no_correlation,
                             ROW(reply_addresses, i));
                cr_expect(broker_replies_with(&broker,
                                              (struct sending){ WORDS(S("GET"), S("k")), .topic = S("t") },
                                              S("$1\r\nv\r\n")),
                          ROW(reply_addresses, i));
                teardown();
        }
}

/* A client may rely on the order of its replies. A fault stays one if the commit fails. */
Test(replies, fault_is_reported_in_the_order_of_the_requests) {
        static const int results[] = { 0, -EIO };

        for (size_t i = 0; i < N_ROWS(results); i++) {
                setup();
                broker.commit_result = 1;
                broker_send(&broker, (struct sending){ WORDS(SET_K), .topic = S("first") });
                broker_send(&broker,
                            (struct sending){ WORDS(SET_K), .topic = S("second"), .version = S("2.0") });
                broker_send(&broker, (struct sending){ WORDS(S("GET"), S("k")), .topic = S("third") });
                broker_flush(&broker);
                cr_expect_eq(broker.n_sent, 0, "the commit has not ended");
                broker_committed(&broker, results[i]);

                cr_assert_eq(broker.n_sent, 3);
                cr_expect(slice_equal(broker.sent[0]->topic, S("first")));
                cr_expect_eq(broker.sent[0]->payload.data[0], results[i] < 0 ? '-' : '+');
                cr_expect(slice_equal(broker.sent[1]->topic, S("second")));
                cr_expect(slice_equal(message_property(broker.sent[1], "__stat"), S("505")));
                cr_expect(slice_equal(message_property(broker.sent[1], "__propVal"), S("2.0")));
                cr_expect(slice_equal(broker.sent[2]->topic, S("third")));
                cr_expect_eq(broker.sent[2]->payload.data[0], results[i] < 0 ? '-' : '$');
                teardown();
        }
}

static const struct {
        const char *name;
        struct sending sending;
} invalid_topics[] = {
        { "none", { WORDS(SET_K), .no_topic = true } },
        { "empty", { WORDS(SET_K), .topic = S("") } },
        { "a wildcard", { WORDS(SET_K), .topic = S("a/#") } },
        { "the invoke topic",
          { WORDS(SET_K),
            .topic = S("statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke") } },
        { "a notify topic",
          { WORDS(SET_K), .topic = S("clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/63/x") } },
        { "the broker's own", { WORDS(SET_K), .topic = S("$SYS/x") } },
};

Test(replies, forbidden_response_topic_gets_no_reply_and_no_execution) {
        for (size_t i = 0; i < N_ROWS(invalid_topics); i++) {
                setup();
                broker_send(&broker, invalid_topics[i].sending);
                broker_flush(&broker);
                cr_expect_eq(broker.n_sent, 0, ROW(invalid_topics, i));
                cr_expect_eq(pipeline_counters(broker.pipeline)->n_invalid_response_topics, 1,
                             ROW(invalid_topics, i));
                cr_expect_eq(counters_n_requests(pipeline_counters(broker.pipeline)), 2,
                             ROW(invalid_topics, i));
                cr_expect(broker_replies_with(&broker, (struct sending){ WORDS(S("GET"), S("k")) },
                                              S("$1\r\nv\r\n")),
                          ROW(invalid_topics, i));
                teardown();
        }
}

Test(replies, document_dialect_has_its_own_error_texts) {
        struct pipeline_config config = broker_config();
        const struct message *reply;

        config.dialect = DIALECT_DOCUMENT;
        broker_init(&broker, config);
        broker_do(&broker, "SET k v");
        broker_do(&broker, "KEYNOTIFY k");
        reply = broker_ask(&broker, (struct sending){ WORDS(S("SET"), S("k"), S("w"), S("NX")) });
        cr_expect(slice_equal(reply->payload, S("-1\r\n")));
        cr_expect(slice_equal(message_property(reply, "__ts"), S("1696374425000:0:StateStore")));
        broker_forget(&broker);
        broker_ask(&broker, (struct sending){ WORDS(S("DEL"), S("k")) });
        cr_expect_str_eq(broker_sent(&broker), "c/k:*2|$6|NOTIFY|$3|DEL replies::1 ");
        broker_deinit(&broker);
}
