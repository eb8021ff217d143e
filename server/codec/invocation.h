/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/outcome.h"
#include "engine/request.h"
#include "protocol/message.h"
#include "protocol/properties.h"

/*
 * From an MQTT message on the invoke topic to a request (PROTOCOL.md "Requests", "Request syntax" and
 * "Errors", checks 1 to 7). Pure;
 * what is decoded points into the message.
 */

/*
 * Faults of a message that carries a request, whatever its payload (PROTOCOL.md "Requests" and "Replies").
 *
 *   X(symbol, label, status, property, message)
 *
 * The label is the word in metrics and log lines; the others are sent as `__stat`, `__propName` and `__stMsg`.
 */
#define REQUEST_FAULT_FAULTS(X)                                                                             \
        X(QOS, "wrong qos", "400", "QoS", "a request must be published at QoS 1")                           \
        X(CORRELATION, "no correlation data", "400", "Correlation Data",                                    \
          "a request needs correlation data")                                                               \
        X(VERSION, "unsupported version", "505", PROPERTY_VERSION, "the protocol version is not supported")

enum request_fault {
        REQUEST_FAULT_NONE,
#define REQUEST_FAULT_ENUM(symbol, ...) REQUEST_FAULT_##symbol,
        REQUEST_FAULT_FAULTS(REQUEST_FAULT_ENUM)
#undef REQUEST_FAULT_ENUM
                N_REQUEST_FAULTS,
};

/* The word in metrics and log lines; "none" for REQUEST_FAULT_NONE. */
const char *request_fault_label(enum request_fault fault);

enum invocation_result {
        INVOCATION_REQUEST, /* to be executed */
        INVOCATION_REFUSED, /* to be answered: fault where it is not REQUEST_FAULT_NONE, else outcome */
        INVOCATION_NO_RESPONSE_TOPIC,
        INVOCATION_BAD_RESPONSE_TOPIC, /* neither is executed or answered */
};

struct invocation {
        enum request_fault fault;
        struct slice fault_value; /* of the property that is at fault */
        enum outcome outcome;     /* an error; OUTCOME_DONE: none */
        struct request request;   /* where it is refused before its command is known, the verb is N_VERBS */
};

/* What decoding depends on beside the message. Borrowed. */
struct decoder {
        bool is_proven; /* the broker has the plugin: identities of verified messages count */

        /* the user property by which a SET asks to be kept on disk; NULL: none does */
        const char *persistence_name;
        struct slice persistence_value;
};

enum invocation_result invocation_decode(const struct decoder *decoder, const struct message *message,
                                         struct invocation *ret_invocation);

/*
 * The client in whose queue the message waits before it is decoded. With the plugin this is the verified sender, and absent
 * for a message that the plugin does not vouch for. Without it this is the sender that the message claims, and absent if
 * it claims none. Points into the message.
 */
struct slice invocation_sender(const struct decoder *decoder, const struct message *message);

/*
 * The names of the user properties that are read, the decoder's among them; an absent one ends them. Others need not
 * be kept in a message.
 */
#define INVOCATION_PROPERTIES_MAX 9
void invocation_properties(const struct decoder *decoder, struct slice ret_names[INVOCATION_PROPERTIES_MAX]);
