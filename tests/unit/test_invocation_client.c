/* SPDX-License-Identifier: Apache-2.0 */

/* Protocol section 2: which client is asking. */

#include <criterion/criterion.h>

#include "proto/invocation.h"
#include "unit/table.h"

#define S    SLICE_LITERAL
#define SEAL "0123456789abcdef0123456789abcdef"

#define PAYLOAD_GET       S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
#define PAYLOAD_KEYNOTIFY S("*2\r\n$9\r\nKEYNOTIFY\r\n$1\r\nk\r\n")

static void add(struct message *message, struct slice name, struct slice value) {
        if (value.data)
                message->user_properties[message->n_user_properties++] =
                        (struct user_property){ name, value };
}

#define STAMPED "statestore-"

static const struct {
        const char *name;
        struct slice payload, seal, stamped_seal, stamped_client, source, topic, client;
        uint64_t connection;
} clients[] = {
#define NOBODY                                                                                              \
        { NULL, 0 }
#define NO_STAMP                                                                                            \
        { NULL, 0 }, {                                                                                      \
                NULL, 0                                                                                     \
        }
        { "by __srcId", PAYLOAD_GET, { NULL, 0 }, NO_STAMP, S("c"), S("answers"), S("c"), 0 },
        { "by __srcId before the topic",
          PAYLOAD_GET,
          { NULL, 0 },
          NO_STAMP,
          S("c"),
          S("clients/63/x"),
          S("c"),
          0 },
        { "by the topic as it stands",
          PAYLOAD_GET,
          { NULL, 0 },
          NO_STAMP,
          NOBODY,
          S("clients/63/x"),
          S("63"),
          0 },
        { "by the topic for an empty __srcId",
          PAYLOAD_GET,
          { NULL, 0 },
          NO_STAMP,
          S(""),
          S("clients/c/x"),
          S("c"),
          0 },
        { "nobody", PAYLOAD_GET, { NULL, 0 }, NO_STAMP, NOBODY, S("answers"), NOBODY, 0 },
        { "no plugin: a stamp means nothing",
          PAYLOAD_GET,
          { NULL, 0 },
          S(SEAL ":7"),
          S("forged"),
          S("c"),
          S("answers"),
          S("c"),
          0 },
        { "by the stamp before all else", PAYLOAD_GET, S(SEAL), S(SEAL ":7"), S("true"), S("c"),
          S("clients/d/x"), S("true"), 7 },
        { "a stamp of another run of the broker", PAYLOAD_GET, S(SEAL),
          S("00000000000000000000000000000000:7"), S("forged"), S("c"), S("answers"), S("c"), 0 },
        { "a stamp without a number", PAYLOAD_GET, S(SEAL), S(SEAL), S("forged"), S("c"), S("answers"),
          S("c"), 0 },
        { "a stamp with the number 0", PAYLOAD_GET, S(SEAL), S(SEAL ":0"), S("forged"), S("c"), S("answers"),
          S("c"), 0 },
        { "a stamp without a client", PAYLOAD_GET, S(SEAL), S(SEAL ":7"), NOBODY, S("c"), S("answers"),
          S("c"), 0 },
        { "a KEYNOTIFY with its stamp", PAYLOAD_KEYNOTIFY, S(SEAL), S(SEAL ":7"), S("true"), S("c"),
          S("answers"), S("true"), 7 },
        { "a KEYNOTIFY without, where there should be one", PAYLOAD_KEYNOTIFY, S(SEAL), NO_STAMP, S("c"),
          S("answers"), NOBODY, 0 },
        { "a KEYNOTIFY without a plugin",
          PAYLOAD_KEYNOTIFY,
          { NULL, 0 },
          NO_STAMP,
          S("c"),
          S("answers"),
          S("c"),
          0 },
};

Test(client, is_who_the_broker_vouches_for_or_who_the_message_claims) {
        for (size_t i = 0; i < N_ROWS(clients); i++) {
                struct message message = { .payload = clients[i].payload,
                                           .correlation_data = S("1234"),
                                           .qos = 1 };
                struct decoder decoder = { 0 };
                struct invocation invocation;

                message.response_topic = clients[i].topic;
                add(&message, S("__srcId"), clients[i].source);
                add(&message, S(STAMPED "seal"), clients[i].stamped_seal);
                add(&message, S(STAMPED "client-id"), clients[i].stamped_client);
                decoder.seal = clients[i].seal;
                invocation_decode(&decoder, &message, &invocation);
                cr_expect(slice_equal(invocation.request.client, clients[i].client), ROW(clients, i));
                cr_expect_eq(invocation.request.connection, clients[i].connection, ROW(clients, i));
        }
}
