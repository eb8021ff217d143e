/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The yardstick with the lowest cost: a blocking socket, one read and one write for all available
 * requests, no library, a fixed reply.
 */

#include "bench/arguments.h"
#include "bench/fixed_reply.h"
#include "bench/peer.h"
#include "bench/ready_file.h"
#include "protocol/topics.h"

static void reply(void *userdata, const struct message *request) {
        struct peer *peer = userdata;
        struct message reply;

        fixed_reply_fill(&reply);
        reply.topic = request->response_topic;
        reply.correlation_data = request->correlation_data;
        peer_publish(peer, &reply);
}

int main(int n_arguments, char **arguments) {
        const char *client_id = "statestored", *ready_file = NULL;
        uint64_t port = 1883;
        struct peer peer;

        arguments_read(n_arguments, arguments,
                       (const struct argument[]){
                               { "port", ARGUMENT_NUMBER, &port },
                               { "client-id", ARGUMENT_TEXT, &client_id },
                               { "ready-file", ARGUMENT_TEXT, &ready_file },
                               { 0 },
                       });

        peer_connect(&peer, port, client_id);
        peer_subscribe(&peer, TOPIC_INVOKE);
        ready_file_write(ready_file);
        for (;;) {
                peer_read(&peer, reply, &peer);
                peer_flush(&peer);
        }
}
