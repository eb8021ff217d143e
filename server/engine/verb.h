/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "base/bytes.h"
#include "policy/policy.h"

/*
 * The commands of the protocol (PROTOCOL.md "Request syntax"). VERBS is the only list of them.
 *
 *   X(symbol, name, access, n_arguments_min, n_arguments_max, flags, decode, execute)
 *
 * The symbol is also the word on the wire. The name is the word in metrics and log lines. The access
 * is what a policy must grant. The verb itself does not count as an argument. decode: the function
 * in codec/invocation.c for the arguments after the key; that of SET checks the number of its
 * options. execute: the function in commands.c.
 */
#define VERBS(X)                                                                                            \
        X(SET, set, ACCESS_WRITE, 2, SIZE_MAX,                                                              \
          VERB_IS_FENCED | VERB_IS_REMEMBERED | VERB_NEEDS_TIMESTAMP | VERB_STORES_VALUE, decode_set,       \
          execute_set)                                                                                      \
        X(GET, get, ACCESS_READ, 1, 1, 0, decode_nothing, execute_get)                                      \
        X(DEL, del, ACCESS_WRITE, 1, 1, VERB_IS_FENCED | VERB_IS_REMEMBERED, decode_nothing, execute_del)   \
        X(VDEL, vdel, ACCESS_WRITE, 2, 2, VERB_IS_FENCED | VERB_IS_REMEMBERED, decode_value, execute_vdel)  \
        X(KEYNOTIFY, keynotify, ACCESS_READ, 1, 2, VERB_IS_REMEMBERED | VERB_IS_RENEWED, decode_keynotify,  \
          execute_keynotify)                                                                                \
        X(SCAN, scan, ACCESS_READ, 1, 2, VERB_TAKES_PATTERN, decode_value, execute_scan)

enum verb {
#define VERB_ENUM(symbol, ...) VERB_##symbol,
        VERBS(VERB_ENUM)
#undef VERB_ENUM
                VERB_UNKNOWN, /* of a request that was refused before its command was known */
        N_VERBS = VERB_UNKNOWN,
};

enum verb_flags {
        VERB_IS_FENCED = 1,       /* if the key has a fencing token, needs this or a newer token */
        VERB_IS_REMEMBERED = 2,   /* changes state, so a repeated request gets the first reply */
        VERB_NEEDS_TIMESTAMP = 4, /* a request without a timestamp is refused: has the outcomes ON_TIMED */
        VERB_TAKES_PATTERN = 8,   /* the first argument is a pattern of keys, not a key */
        VERB_STORES_VALUE = 16,   /* store_value() may refuse it: has the outcomes ON_STORING */
        VERB_IS_RENEWED = 32,     /* a repeated request is executed again: its effect may have ended */
};

/* The rows of VERBS, and a row for VERB_UNKNOWN with an absent text and the label "unknown". */
extern const struct verb_properties {
        struct slice text; /* the word on the wire, upper case */
        const char *label; /* the word in metrics and log lines */
        enum access access;
        size_t n_arguments_min, n_arguments_max;
        unsigned int flags;
} verbs[N_VERBS + 1];

/* Find the verb with this word. Returns false, and leaves *ret_verb unchanged, if there is none. */
bool verb_from_text(struct slice text, enum verb *ret_verb);

/* For error messages. */
#define VERB_WORD(symbol, ...) " " #symbol
#define VERBS_EXPECTED         "one of" VERBS(VERB_WORD) " was expected"
