/* SPDX-License-Identifier: Apache-2.0 */

/* The sender of a request: PROTOCOL.md "Requests". */

#include <criterion/criterion.h>

#include "codec/invocation.h"
#include "unit/support/plugin_messages.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define PAYLOAD_GET       S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
#define PAYLOAD_KEYNOTIFY S("*2\r\n$9\r\nKEYNOTIFY\r\n$1\r\nk\r\n")

static void add(struct message *message, struct slice name, struct slice value) {
        if (value.data)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ name, value };
}

#define NO_NAME                                                                                             \
        { NULL, 0 }

static const struct {
        const char *name;
        struct slice payload;
        bool has_plugin, is_verified;
        struct slice source, topic, client;
        uint64_t connection;
} clients[] = {
        { "by __srcId", PAYLOAD_GET, false, false, S("c"), S("replies"), S("c"), 0 },
        { "by __srcId before the topic", PAYLOAD_GET, false, false, S("c"), S("clients/63/x"), S("c"), 0 },
        { "by the topic, not decoded", PAYLOAD_GET, false, false, NO_NAME, S("clients/63/x"), S("63"), 0 },
        { "by the topic for an empty __srcId", PAYLOAD_GET, false, false, S(""), S("clients/c/x"), S("c"),
          0 },
        { "no client", PAYLOAD_GET, false, false, NO_NAME, S("replies"), NO_NAME, 0 },
        { "identity properties without the plugin are ignored", PAYLOAD_GET, false, true, S("c"),
          S("replies"), S("c"), 0 },
        { "not verified", PAYLOAD_GET, true, false, S("c"), S("replies"), NO_NAME, 0 },
        { "by the identity properties", PAYLOAD_GET, true, true, S("c"), S("clients/d/x"), S("true"), 7 },
        { "a KEYNOTIFY", PAYLOAD_KEYNOTIFY, true, true, S("c"), S("replies"), S("true"), 7 },
};

Test(client, is_the_verified_one_or_the_claimed_one) {
        for (size_t i = 0; i < N_ROWS(clients); i++) {
                struct message message = { .payload = clients[i].payload,
                                           .correlation_data = S("1234"),
                                           .response_topic = clients[i].topic,
                                           .is_verified = clients[i].is_verified,
                                           .qos = 1 };
                struct decoder decoder = { .has_plugin = clients[i].has_plugin };
                struct sender sender = { 'a', S("true"), { 0 }, 7, 1 };
                struct companion_mac mac;
                struct invocation invocation;

                add(&message, S("__srcId"), clients[i].source);
                add_identity(&message, &sender, &mac);
                invocation_decode(&decoder, &message, &invocation);
                cr_expect(slice_equal(invocation.request.client, clients[i].client), ROW(clients, i));
                cr_expect_eq(invocation.request.connection, clients[i].connection, ROW(clients, i));
        }
}

Test(client, has_the_user_name_and_the_connection_of_the_identity_properties) {
        const struct sender senders[] = { { 'a', S("c"), S("u"), 7, 1 },
                                          { 'a', S("c"), { 0 }, UINT64_MAX, 1 } };

        for (size_t i = 0; i < N_ROWS(senders); i++) {
                struct message message = { .payload = PAYLOAD_GET,
                                           .correlation_data = S("1234"),
                                           .response_topic = S("answers"),
                                           .is_verified = true,
                                           .qos = 1 };
                struct decoder decoder = { .has_plugin = true };
                struct companion_mac mac;
                struct invocation invocation;

                add_identity(&message, &senders[i], &mac);
                invocation_decode(&decoder, &message, &invocation);
                cr_expect(slice_equal(invocation.request.user, senders[i].user), "row %zu", i);
                cr_expect_eq(!invocation.request.user.data, !senders[i].user.data, "row %zu", i);
                cr_expect_eq(invocation.request.connection, senders[i].connection, "row %zu", i);
        }
}
