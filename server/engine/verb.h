/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "base/bytes.h"
#include "policy/policy.h"

/*
 * The commands of the protocol (PROTOCOL.md "Request syntax"). VERBS is the only list of them.
 *
 *   X(symbol, label, access, n_arguments_min, n_arguments_max)
 *
 * The symbol is also the word on the wire. The label is the word in metrics and log lines. The access is what a
 * policy must grant. SET checks the number of its options itself.
 */
#define VERBS(X)                                                                                            \
        X(SET, "set", ACCESS_WRITE, 2, SIZE_MAX)                                                            \
        X(GET, "get", ACCESS_READ, 1, 1)                                                                    \
        X(DEL, "del", ACCESS_WRITE, 1, 1)                                                                   \
        X(VDEL, "vdel", ACCESS_WRITE, 2, 2)                                                                 \
        X(KEYNOTIFY, "keynotify", ACCESS_READ, 1, 2)                                                        \
        X(SCAN, "scan", ACCESS_READ, 1, 2)

/* The words of VERBS, for error messages. */
#define VERBS_EXPECTED "SET, GET, DEL, VDEL, KEYNOTIFY or SCAN was expected"

enum verb {
#define VERB_ENUM(symbol, ...) VERB_##symbol,
        VERBS(VERB_ENUM)
#undef VERB_ENUM
                VERB_UNKNOWN, /* of a request that was refused before its command was known */
        N_VERBS = VERB_UNKNOWN,
};

/* The word on the wire, upper case; absent for VERB_UNKNOWN. */
struct slice verb_text(enum verb verb);

/* Find the verb with this word. Returns false, and leaves *ret_verb unchanged, if there is none. */
bool verb_from_text(struct slice text, enum verb *ret_verb);

/* The word in metrics and log lines; "unknown" for VERB_UNKNOWN. */
const char *verb_label(enum verb verb);

/* The access that a policy must grant for this command. */
enum access verb_access(enum verb verb);

/* Return whether the command accepts this number of arguments, the verb itself not counted. */
bool verb_accepts(enum verb verb, size_t n_arguments);
