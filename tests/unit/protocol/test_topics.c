/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Topics", and the rules for Response Topics of PROTOCOL.md "Requests". */

#include <criterion/criterion.h>

#include "protocol/topics.h"
#include "unit/support/table.h"

#define S       SLICE_LITERAL
#define UUID    "FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8"
#define SERVICE "statestore/v1/" UUID

Test(topics, equal_those_of_the_protocol) {
        cr_expect_str_eq(TOPIC_INVOKE, SERVICE "/command/invoke");
        cr_expect_str_eq(TOPIC_NOTIFY_PREFIX, "clients/" SERVICE);
        cr_expect_eq(TOPIC_LENGTH_MAX, 65535);
}

static const struct {
        const char *name;
        struct slice client, key, topic;
} notified[] = {
        { "the example of PROTOCOL.md", S("client-id1"), S("SOMEKEY"),
          S("clients/" SERVICE "/636C69656E742D696431/command/notify/534F4D454B4559") },
        { "bytes of any value", S("a/+#"), S("\0\xFF\r\n"),
          S("clients/" SERVICE "/612F2B23/command/notify/00FF0D0A") },
        { "one byte each", S("c"), S("k"), S("clients/" SERVICE "/63/command/notify/6B") },
};

Test(notify_topic, has_client_and_key_in_base16) {
        for (size_t i = 0; i < N_ROWS(notified); i++) {
                struct buf topic = { 0 };

                topic_append_notify(&topic, notified[i].client, notified[i].key);
                cr_expect(slice_equal(buf_slice(&topic), notified[i].topic), ROW(notified, i));
                cr_expect_eq(topic_notify_length(notified[i].client.length, notified[i].key.length),
                             topic.length, ROW(notified, i));
                buf_deinit(&topic);
        }
}

#define NOTIFY(client) "clients/" SERVICE "/" client "/command/notify/"

static const struct {
        const char *name, *client, *topic;
        bool is_own;
} notify_topics[] = {
        { "its own", "c/", NOTIFY("632F") "6B", true },
        { "wildcards in the client id", "+#", NOTIFY("2B23") "6B", true },
        { "another client", "c", NOTIFY("64") "6B", false },
        { "a client id that begins with it", "c", NOTIFY("6363") "6B", false },
        { "a client id that it begins with", "cc", NOTIFY("63") "6B", false },
        { "half a digit pair", "c", NOTIFY("6") "6B", false },
        { "lower case", "o", NOTIFY("6f") "6B", false },
        { "the id itself", "63", NOTIFY("63") "6B", false },
        { "no key", "c", NOTIFY("63"), false },
        { "a further level", "c", NOTIFY("63") "6B/6B", false },
        { "another verb", "c", "clients/" SERVICE "/63/command/invoke/6B", false },
        { "its end is missing", "c", "clients/" SERVICE "/63", false },
        { "the prefix", "c", "clients/" SERVICE, false },
        { "no client id", "", NOTIFY("63") "6B", false },
        { "a topic of another kind", "c", "clients/c/replies", false },
        { "empty", "c", "", false },
};

Test(notify_topic, belongs_to_the_client_with_exactly_this_id) {
        for (size_t i = 0; i < N_ROWS(notify_topics); i++)
                cr_expect_eq(topic_is_notify_of(notify_topics[i].topic, notify_topics[i].client),
                             notify_topics[i].is_own, ROW(notify_topics, i));
}

#define RUST "/services/" SERVICE "/command/invoke/response"
#define NET  "/" SERVICE "/command/invoke"
#define PAGE "/services/statestore/_any_/command/invoke/response"
#define GO   "/" SERVICE "/command/invoke/response"

static const struct {
        const char *name, *client, *topic;
        bool is_own;
} reply_topics[] = {
        { "the Rust client", "pump-1", "clients/pump-1" RUST, true },
        { "the .NET client", "pump-1", "clients/pump-1" NET, true },
        { "the published page", "pump-1", "clients/pump-1" PAGE, true },
        { "the Go client", "pump-1", "clients/70756D702D31" GO, true },
        { "a client id with levels", "/a//b/", "clients//a//b/" RUST, true },
        { "a client id with levels in base16", "a/b", "clients/612F62" GO, true },
        { "a client id like a suffix", "services", "clients/services" NET, true },
        { "a long client id that begins like a suffix", "a/services", "clients/a/services" NET, true },

        { "a client id that the topic's begins with", "a", "clients/a/b" RUST, false },
        { "a client id that begins with the topic's", "a/b", "clients/a" RUST, false },
        { "a client id with a part of the suffix", "a/services", "clients/a" RUST, false },
        { "raw with the suffix of base16", "a", "clients/a" GO, false },
        { "raw, as long as a client id in base16", "61", "clients/61" GO, false },
        { "base16 with a suffix of raw", "a", "clients/61" RUST, false },
        { "lower case", "o", "clients/6f" GO, false },
        { "half a digit pair", "o", "clients/6" GO, false },
        { "a longer suffix", "a", "clients/a" NET "/x", false },
        { "a shorter suffix", "a", "clients/a/services/statestore", false },
        { "no suffix", "a", "clients/a", false },
        { "no client id", "", "clients/" NET, false },
        { "a wildcard", "a", "clients/+" NET, false },
        { "another first level", "a", "client/a" NET, false },
        { "empty", "a", "", false },
};

Test(reply_topic, belongs_to_the_client_with_exactly_this_id) {
        for (size_t i = 0; i < N_ROWS(reply_topics); i++)
                cr_expect_eq(topic_is_reply_of(reply_topics[i].topic, reply_topics[i].client),
                             reply_topics[i].is_own, ROW(reply_topics, i));
}

/* Return whether the other suffix, with levels before it, is this one. */
static bool ends_with_suffix(const struct topic_reply_form *form, const struct topic_reply_form *other) {
        struct slice end = { form->suffix.data + form->suffix.length - other->suffix.length,
                             other->suffix.length };

        return form->suffix.length > other->suffix.length && end.data[-1] == '/' &&
               slice_equal(end, other->suffix);
}

/*
 * If a topic were that of two clients, the suffix of one would end with '/' and the suffix of the
 * other, or both suffixes would be equal. A client id in base16 has no '/', so it cannot contain the
 * beginning of a longer suffix.
 */
Test(reply_topic, belongs_to_one_client_at_most) {
        for (size_t i = 0; i < TOPIC_REPLY_FORMS; i++)
                for (size_t k = 0; k < TOPIC_REPLY_FORMS; k++) {
                        const struct topic_reply_form *form = &topic_reply_forms[i],
                                                      *other = &topic_reply_forms[k];

                        cr_expect(i == k || !slice_equal(form->suffix, other->suffix));
                        cr_expect(!ends_with_suffix(form, other) || (!form->is_base16 && other->is_base16));
                }
}

static const struct {
        const char *name;
        struct slice filter;
        bool is_match;
} reply_filters[] = {
        { "a reply topic", S("a/services/statestore/_any_/command/invoke/response"), true },
        { "a wildcard for the client id", S("+" NET), true },
        { "wildcards only", S("+/+/+/+/+/+"), true },
        { "wildcards for a client id with levels", S("+/a/+/statestore/+/" UUID "/+/invoke"), true },
        { "all levels", S("#"), true },
        { "all levels below a client id with levels", S("a/b/c/#"), true },

        { "no level for the client id", S(SERVICE "/command/invoke"), false },
        { "too few levels", S("+/+/+/+/+"), false },
        { "another last level", S("+/+/+/+/+/state"), false },
        { "another middle level", S("+/+/v2/+/+/+"), false },
        { "one level", S("+"), false },
};

Test(reply_topic, matches_filters_that_leave_levels_for_the_client_id) {
        for (size_t i = 0; i < N_ROWS(reply_filters); i++)
                cr_expect_eq(topic_filter_matches_reply(reply_filters[i].filter), reply_filters[i].is_match,
                             ROW(reply_filters, i));
}

static const struct {
        const char *name;
        struct slice topic;
        bool valid;
} responses[] = {
        { "the advice of PROTOCOL.md", S("clients/id/services/statestore/_any_/command/invoke/response"),
          true },
        { "one level", S("replies"), true },
        { "one byte", S("/"), true },
        { "empty levels", S("//a//"), true },
        { "UTF-8", S("antw\xC3\xB6rt/\xF0\x9F\x98\x80"), true },
        { "blanks", S(" a b "), true },
        { "a dollar on a later level", S("a/$SYS"), true },
        { "below the invoke topic", S(SERVICE "/command/invoke/x"), true },
        { "above the invoke topic", S(SERVICE "/command"), true },
        { "the invoke topic in lower case",
          S("statestore/v1/fa9ae35f-2f64-47cd-9bff-08e2b32a0fe8/command/invoke"), true },
        { "a client's own", S("clients/statestore/x"), true },
        { "the prefix without its last byte", S("clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE"),
          true },
        { "the prefix on a later level", S("x/clients/" SERVICE), true },

        { "absent", { NULL, 0 }, false },
        { "empty", S(""), false },
        { "the invoke topic", S(SERVICE "/command/invoke"), false },
        { "the forbidden prefix itself", S("clients/" SERVICE), false },
        { "below the forbidden prefix", S("clients/" SERVICE "/63/command/notify/6B"), false },
        { "a longer topic with the forbidden prefix", S("clients/" SERVICE "x"), false },
        { "a wildcard for one level", S("clients/+/response"), false },
        { "a wildcard inside a level", S("clients/a+b"), false },
        { "a wildcard for all", S("clients/#"), false },
        { "a wildcard at the end of a level", S("clients/a#"), false },
        { "NUL", S("clients/\0/response"), false },
        { "NUL at the end", S("clients\0"), false },
        { "not UTF-8", S("clients/\xFF"), false },
        { "a surrogate", S("clients/\xED\xA0\x80"), false },
        { "an overlong slash", S("clients\xC0\xAF"), false },
        { "the broker's own", S("$SYS/broker"), false },
        { "a shared subscription", S("$share/g/t"), false },
};

Test(response_topic, is_valid_unless_the_protocol_forbids_it) {
        for (size_t i = 0; i < N_ROWS(responses); i++)
                cr_expect_eq(topic_is_valid_response(responses[i].topic), responses[i].valid,
                             ROW(responses, i));
}

Test(response_topic, may_be_as_long_as_mqtt_allows) {
        static uint8_t text[TOPIC_LENGTH_MAX + 1];

        memset(text, 'a', sizeof(text));
        cr_expect(topic_is_valid_response((struct slice){ text, TOPIC_LENGTH_MAX }));
        cr_expect(!topic_is_valid_response((struct slice){ text, TOPIC_LENGTH_MAX + 1 }));
}

Test(response_topic, may_have_100_levels) {
        uint8_t text[2 * TOPIC_LEVELS_MAX];

        cr_expect_eq(TOPIC_LEVELS_MAX, 100);
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = i % 2 ? '/' : 'a';
        cr_expect(topic_is_valid_response((struct slice){ text, sizeof(text) - 1 }));
        cr_expect(!topic_is_valid_response((struct slice){ text, sizeof(text) }));
        memset(text, '/', sizeof(text));
        cr_expect(topic_is_valid_response((struct slice){ text, TOPIC_LEVELS_MAX - 1 }));
        cr_expect(!topic_is_valid_response((struct slice){ text, TOPIC_LEVELS_MAX }));
}

static const struct {
        const char *name;
        struct slice topic, client;
} clients[] = {
        { "the raw id", S("clients/my-client/services/x"), S("my-client") },
        { "the hexadecimal id of the Go library, not decoded", S("clients/636C/x"), S("636C") },
        { "nothing after the slash", S("clients/c/"), S("c") },
        { "no level after the id", S("clients/c"), { NULL, 0 } },
        { "an empty id", S("clients//x"), { NULL, 0 } },
        { "no id", S("clients"), { NULL, 0 } },
        { "another first level", S("client/c/x"), { NULL, 0 } },
        { "a longer first level", S("clientsx/c/x"), { NULL, 0 } },
        { "an empty first level", S("/clients/c/x"), { NULL, 0 } },
        { "upper case", S("Clients/c/x"), { NULL, 0 } },
        { "absent", { NULL, 0 }, { NULL, 0 } },
};

Test(response_topic, has_the_client_id_on_its_second_level) {
        for (size_t i = 0; i < N_ROWS(clients); i++) {
                struct slice client = topic_response_client(clients[i].topic);

                cr_expect(slice_equal(client, clients[i].client), ROW(clients, i));
                cr_expect_eq(!client.data, !clients[i].client.data, ROW(clients, i));
        }
}
