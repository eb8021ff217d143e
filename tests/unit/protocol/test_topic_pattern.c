/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Topic patterns with {client}: on these topics, brokers without the plugin publish which client
 * disconnected.
 */

#include <criterion/criterion.h>

#include "protocol/topics.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice pattern, topic, client; /* client absent: no match */
} matches[] = {
        { "the last level", S("gone/{client}"), S("gone/c1"), S("c1") },
        { "the first level", S("{client}/gone"), S("c1/gone"), S("c1") },
        { "a level between", S("$SYS/{client}/gone"), S("$SYS/c1/gone"), S("c1") },
        { "alone", S("{client}"), S("c1"), S("c1") },
        { "a client of any text", S("gone/{client}"), S("gone/\xC3\xA4 {}"), S("\xC3\xA4 {}") },
        { "with one level of any text", S("$SYS/brokers/+/clients/{client}/disconnected"),
          S("$SYS/brokers/node1/clients/c1/disconnected"), S("c1") },
        { "with # and two more levels", S("gone/{client}/#"), S("gone/c1/a/b"), S("c1") },
        { "with # and one more level", S("gone/{client}/#"), S("gone/c1/a"), S("c1") },
        { "with # and no more level", S("gone/{client}/#"), S("gone/c1"), S("c1") },
        { "another level", S("gone/{client}"), S("here/c1"), { NULL, 0 } },
        { "a longer level", S("gone/{client}"), S("goner/c1"), { NULL, 0 } },
        { "a level too many", S("gone/{client}"), S("gone/c1/x"), { NULL, 0 } },
        { "a level too few", S("gone/{client}/x"), S("gone/c1"), { NULL, 0 } },
        { "an empty client", S("gone/{client}"), S("gone/"), { NULL, 0 } },
        { "another case", S("gone/{client}"), S("Gone/c1"), { NULL, 0 } },
        { "a pattern without a client", S("gone/+"), S("gone/c1"), { NULL, 0 } },
        { "a pattern of one level", S("gone"), S("gone"), { NULL, 0 } },
        { "nothing", S(""), S(""), { NULL, 0 } },
};

Test(topic_pattern, finds_the_client_in_a_topic) {
        for (size_t i = 0; i < N_ROWS(matches); i++) {
                struct slice client = { 0 };
                bool matched = topic_match_client(matches[i].topic, matches[i].pattern, &client);

                cr_expect_eq(matched, matches[i].client.data != NULL, ROW(matches, i));
                cr_expect(slice_equal(client, matches[i].client), ROW(matches, i));
        }
}

static const struct {
        const char *name;
        struct slice pattern, filter;
} filters[] = {
        { "the last level", S("gone/{client}"), S("gone/+") },
        { "the first level", S("{client}/gone"), S("+/gone") },
        { "with wildcards", S("$SYS/+/{client}/#"), S("$SYS/+/+/#") },
        { "alone", S("{client}"), S("+") },
        { "an empty level stays", S("/a//{client}/"), S("/a//+/") },
};

Test(topic_pattern, is_a_topic_filter) {
        for (size_t i = 0; i < N_ROWS(filters); i++) {
                struct buf filter = { 0 };

                topic_append_filter(&filter, filters[i].pattern);
                cr_expect(slice_equal(buf_slice(&filter), filters[i].filter), ROW(filters, i));
                buf_deinit(&filter);
        }
}
