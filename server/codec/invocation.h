/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/outcome.h"
#include "engine/request.h"
#include "protocol/frame.h"
#include "protocol/message.h"
#include "protocol/properties.h"

/*
 * Decode an MQTT message on the invoke topic to a request (PROTOCOL.md "Requests", "Request
 * syntax", and checks 1 to 7 of "Errors"). No I/O. The request borrows from the message.
 */

/*
 * Faults of the MQTT properties of a request (PROTOCOL.md "Requests" and "Replies"). Errors in the
 * payload are outcomes (engine/outcome.h).
 *
 *   X(symbol, label, status, property, message)
 *
 * The label appears in metrics and log lines. The other columns are sent as `__stat`, `__propName`
 * and `__stMsg`.
 */
#define REQUEST_FAULTS(X)                                                                                   \
        X(QOS, "wrong qos", "400", "QoS", "a request must be published at QoS 1")                           \
        X(CORRELATION, "no correlation data", "400", "Correlation Data",                                    \
          "a request needs correlation data")                                                               \
        X(VERSION, "unsupported version", "505", PROPERTY_VERSION, "the protocol version is not supported")

enum request_fault {
        REQUEST_FAULT_NONE,
#define REQUEST_FAULT_ENUM(symbol, ...) REQUEST_FAULT_##symbol,
        REQUEST_FAULTS(REQUEST_FAULT_ENUM)
#undef REQUEST_FAULT_ENUM
                N_REQUEST_FAULTS,
};

/* The word in metrics and log lines; "none" for REQUEST_FAULT_NONE. */
const char *request_fault_label(enum request_fault fault);

/* What decoding has found: the last one that applies. */
enum invocation_result {
        INVOCATION_REQUEST,            /* execute the request */
        INVOCATION_REFUSED,            /* reply with the outcome, which is an error */
        INVOCATION_FAULTY,             /* reply with the fault */
        INVOCATION_NO_RESPONSE_TOPIC,  /* drop the message without a reply */
        INVOCATION_BAD_RESPONSE_TOPIC, /* drop the message without a reply */
};

struct invocation {
        enum invocation_result result;
        enum request_fault fault;
        struct slice fault_value; /* value of the invalid property */
        enum outcome outcome;     /* of INVOCATION_REFUSED */
        struct request request;   /* verb is VERB_UNKNOWN if the command was not decoded */
        bool has_expiry;          /* the message has a Message Expiry Interval, perhaps 0 */
};

/* Parameters of decoding. Strings are borrowed. */
struct decoder {
        /* The user property with which a SET requests persistence. NULL: no such property. */
        const char *persistence_name;
        struct slice persistence_value;
};

/*
 * Decode a message of a broker without the plugin. Sets *ret_invocation with any result: log lines
 * and metrics use the fields of refused requests too.
 */
void invocation_decode(const struct decoder *decoder, const struct message *message,
                       struct invocation *ret_invocation);

/*
 * As invocation_decode(), for a request in a frame of the plugin. The sender is that of the record,
 * which the broker vouches for. The caller sets request.id.
 */
void invocation_decode_record(const struct decoder *decoder, const struct frame_to_store_record *record,
                              struct invocation *ret_invocation);

/*
 * Return the client id that the message claims for its sender (PROTOCOL.md "Requests"), to select a
 * queue before the message is decoded; absent if it claims none. The result points into the message.
 */
struct slice invocation_sender(const struct message *message);

/*
 * Return the names of all user properties that invocation_decode() reads. An absent name ends the
 * array. The MQTT client can drop other user properties of received messages.
 */
#define INVOCATION_PROPERTIES_MAX 7
void invocation_properties(const struct decoder *decoder, struct slice ret_names[INVOCATION_PROPERTIES_MAX]);
