/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/outcome.h"
#include "engine/request.h"
#include "protocol/frame.h"
#include "protocol/properties.h"

/*
 * Decode a request (PROTOCOL.md "Requests", "Request syntax", and checks 1 to 7 of "Errors"). No I/O, no
 * allocation: all slices borrow from the record, or are constants.
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

struct invocation {
        struct request
                request; /* verb is VERB_UNKNOWN if the command was not decoded; expiry_s is not set */
        bool has_response_topic; /* a valid one; otherwise drop the request without a reply */
        enum request_fault fault;
        struct slice fault_value; /* value of the invalid property */
        enum outcome outcome;     /* OUTCOME_DONE, or the error; the pipeline may refuse a request, too */
        uint64_t hook_number;     /* for the hook `reply` (pipeline/hooks.h); decoding sets 0 */
};

/* Parameters of decoding. Strings are borrowed. */
struct decoder {
        /* The user property with which a SET requests persistence. NULL: no such property. */
        const char *persistence_name;
        struct slice persistence_value;
};

/* The user properties of a request that the store reads. */
enum request_property {
        REQUEST_TIMESTAMP,
        REQUEST_FENCE,
        REQUEST_SOURCE_ID,
        REQUEST_VERSION,
        REQUEST_DETAILS,
        REQUEST_PERSISTENCE, /* decoder.persistence_name */
        N_REQUEST_PROPERTIES,
};

/*
 * Decode a request. Of several user properties with one name, the first counts. Log lines and metrics use
 * the fields of refused requests too.
 */
void invocation_decode(const struct decoder *decoder, const struct frame_to_store_record *record,
                       struct invocation *ret_invocation);

/* Return whether no error was found, so the request may be executed if it has a response topic. */
static inline bool invocation_is_accepted(const struct invocation *invocation) {
        return invocation->fault == REQUEST_FAULT_NONE && invocation->outcome == OUTCOME_DONE;
}

/*
 * Return the names of the user properties that the store reads, by enum request_property. An absent
 * name ends the array. The MQTT client can drop other user properties of received messages.
 */
void invocation_properties(const struct decoder *decoder, struct slice ret_names[N_REQUEST_PROPERTIES + 1]);
