/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "engine/verb.h"

/*
 * The result of a request: every answer that the store can give (PROTOCOL.md "Commands" and "Errors").
 * OUTCOMES is the only
 * list of them. Errors stand in the order in which they are checked.
 *
 *   ANSWER(symbol, name, verbs, payload)   payload: as sent; empty if it is built for each answer
 *   ERROR(symbol, name, verbs, text)       text: what follows "-ERR " in the payload
 *
 * Payloads and texts are those of the sdk dialect; the encoder knows where the document dialect differs.
 * The name is the metric label, the reason in the log, and the text in storage. Storage keeps names, not numbers: a
 * name never changes its meaning, and a retired name is never used again.
 * verbs: whose requests can have the outcome; ON_UNKNOWN is a request whose verb was not decoded.
 */
#define OUTCOMES(ANSWER, ERROR)                                                                             \
        ANSWER(DONE, "done", ON_SET | ON_KEYNOTIFY, "+OK\r\n")                                              \
        ANSWER(VALUE, "value", ON_GET, "")                                                                  \
        ANSWER(NO_VALUE, "no value", ON_GET, "$-1\r\n")                                                     \
        ANSWER(DELETED, "deleted", ON_DEL | ON_VDEL, ":1\r\n")                                              \
        ANSWER(NOTHING, "nothing", ON_DEL | ON_VDEL | ON_KEYNOTIFY, ":0\r\n")                               \
        ANSWER(CONDITION_NOT_MET, "condition not met", ON_SET | ON_VDEL, ":-1\r\n")                         \
        ANSWER(PAGE, "page", ON_SCAN, "")                                                                   \
        ERROR(SYNTAX_ERROR, "syntax error", ON_SET | ON_KEYNOTIFY | ON_SCAN | ON_UNKNOWN, "syntax error")   \
        ERROR(UNKNOWN_COMMAND, "unknown command", ON_UNKNOWN, "unknown command")                            \
        ERROR(WRONG_NUMBER_OF_ARGUMENTS, "wrong number of arguments", ON_ALL, "wrong number of arguments")  \
        ERROR(EMPTY_KEY, "empty key", ON_ALL & ~ON_SCAN, "the key length is zero")                          \
        ERROR(MISSING_TIMESTAMP, "missing timestamp", ON_SET, "missing timestamp")                          \
        ERROR(MALFORMED_TIMESTAMP, "malformed timestamp", ON_ALL, "malformed timestamp")                    \
        ERROR(TIMESTAMP_TOO_FAR, "timestamp too far", ON_ALL, OUTCOME_TOO_FAR("timestamp"))                 \
        ERROR(FENCE_TOO_FAR, "fence too far", ON_FENCED, OUTCOME_TOO_FAR("fencing token timestamp"))        \
        ERROR(NOT_AUTHORIZED, "not authorized", ON_ALL, "not authorized")                                   \
        ERROR(FENCE_REQUIRED, "fence required", ON_FENCED, "a fencing token is required for this request")  \
        ERROR(FENCE_TOO_OLD, "fence too old", ON_FENCED, OUTCOME_FENCE_LOWER("than"))                       \
        ERROR(KEY_TOO_LONG_TO_NOTIFY, "key too long to notify", ON_KEYNOTIFY,                               \
              "the key is too long to be notified")                                                         \
        ERROR(CLIENT_UNKNOWN, "client unknown", ON_KEYNOTIFY, "the client id is missing")                   \
        ERROR(QUOTA_EXCEEDED, "quota exceeded", ON_SET | ON_KEYNOTIFY, "the quota has been exceeded")       \
        ERROR(VALUE_TOO_LARGE, "value too large", ON_SET, "the value is too large")                         \
        ERROR(REPLY_TOO_LARGE, "reply too large", ON_GET | ON_SCAN, "the reply is too large")               \
        ERROR(OUT_OF_MEMORY, "out of memory", ON_ALL & ~ON_GET, "out of memory")                            \
        /* a batch fails as a whole, and its reads with it: they have seen what is not stored */            \
        ERROR(DISK_FULL, "disk full", ON_ALL, "the disk is full")                                           \
        ERROR(STORAGE_FAILED, "storage failed", ON_ALL, "the storage has failed")

#define OUTCOME_TOO_FAR(what)                                                                               \
        "the request " what " is too far in the future; "                                                   \
        "ensure that the client and broker system clocks are synchronized"
#define OUTCOME_FENCE_LOWER(than)                                                                           \
        "the request fencing token is a lower version " than " the fencing token protecting the resource"

enum outcome {
#define OUTCOME_ENUM(symbol, ...) OUTCOME_##symbol,
        OUTCOMES(OUTCOME_ENUM, OUTCOME_ENUM)
#undef OUTCOME_ENUM
                N_OUTCOMES,
};

const char *outcome_name(enum outcome outcome);

/* Returns 0, or -EINVAL for a text that is no outcome's name. */
int outcome_from_name(struct slice name, enum outcome *ret_outcome);

/*
 * Whether a request with this verb can have this outcome; N_VERBS for one whose verb was not decoded. A fault that
 * a test orders (--control) can give a quota's or a storage's error to any verb.
 */
bool outcome_is_possible(enum verb verb, enum outcome outcome);
