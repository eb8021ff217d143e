/* SPDX-License-Identifier: Apache-2.0 */

/* The sender that a message claims: PROTOCOL.md "Requests". test_invocation_record.c: in a frame. */

#include <criterion/criterion.h>

#include "codec/invocation.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL
#define NO_NAME                                                                                             \
        { NULL, 0 }

static const struct {
        const char *name;
        struct slice source, topic, client;
} clients[] = {
        { "by __srcId", S("c"), S("replies"), S("c") },
        { "by __srcId before the topic", S("c"), S("clients/63/x"), S("c") },
        { "by the topic, not decoded", NO_NAME, S("clients/63/x"), S("63") },
        { "by the topic for an empty __srcId", S(""), S("clients/c/x"), S("c") },
        { "no client", NO_NAME, S("replies"), NO_NAME },
};

Test(client, is_the_claimed_one_without_connection_and_user) {
        for (size_t i = 0; i < N_ROWS(clients); i++) {
                struct message message = { .payload = S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
                                           .correlation_data = S("1234"),
                                           .response_topic = clients[i].topic,
                                           .qos = 1 };
                const struct decoder decoder = { 0 };
                struct invocation invocation;

                if (clients[i].source.data)
                        message.user_properties[message.n_user_properties++] =
                                (struct user_property){ S("__srcId"), clients[i].source };
                invocation_decode_message(&decoder, &message, &invocation);
                cr_expect_eq(invocation.result, INVOCATION_REQUEST, ROW(clients, i));
                cr_expect(slice_equal(invocation.request.client, clients[i].client), ROW(clients, i));
                cr_expect_eq(invocation.request.connection, 0, ROW(clients, i));
                cr_expect_null(invocation.request.user.data, ROW(clients, i));
        }
}
