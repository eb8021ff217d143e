/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/message.h"
#include "core/engine.h"
#include "core/outcome.h"
#include "core/request.h"

/*
 * From an MQTT message on the invoke topic to a request (protocol sections 2, 4 and 6, checks 1 to 7). Pure;
 * what is decoded points into the message.
 */

/* What is wrong with the envelope, whatever the payload says. */
enum envelope_fault {
        ENVELOPE_OK,
        ENVELOPE_QOS,         /* not 1: status 400 */
        ENVELOPE_CORRELATION, /* no Correlation Data: status 400 */
        ENVELOPE_VERSION,     /* a protocol version that is not served: status 505 */
        N_ENVELOPE_FAULTS,
};

enum invocation_result {
        INVOCATION_REQUEST, /* to be executed */
        INVOCATION_REFUSED, /* to be answered: fault where it is not ENVELOPE_OK, else outcome */
        INVOCATION_NO_RESPONSE_TOPIC,
        INVOCATION_BAD_RESPONSE_TOPIC, /* neither is executed or answered */
};

struct invocation {
        enum envelope_fault fault;
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

/* A verb as requests have it, upper case; absent for N_VERBS. */
struct slice verb_text(enum verb verb);
bool verb_from_text(struct slice text, enum verb *ret_verb);

/* engine: is told what will be asked of it while the rest is read, engine_expect(); NULL: none. */
enum invocation_result invocation_decode(const struct decoder *decoder, const struct engine *engine,
                                         const struct message *message, struct invocation *ret_invocation);

/*
 * The names of the user properties that are read, the decoder's among them; an absent one ends them. Others need not
 * be kept in a message.
 */
#define INVOCATION_PROPERTIES_MAX 9
void invocation_properties(const struct decoder *decoder, struct slice ret_names[INVOCATION_PROPERTIES_MAX]);
