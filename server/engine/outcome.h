/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "engine/verb.h"

/*
 * The result of a request: every reply that the store can give (PROTOCOL.md "Commands" and "Errors"). OUTCOMES is the only
 * list of them. Errors are in the order of their first check, except OUT_OF_MEMORY, which can occur at any time.
 *
 *   REPLY(symbol, name, verbs, payload)    payload: as sent; empty if it is built for each reply
 *   ERROR(symbol, name, verbs, text)       text: what follows "-ERR " in the payload
 *
 * Payloads and texts are those of the sdk dialect. The encoder replaces them where the document dialect differs (PROTOCOL.md
 * "Dialects").
 *
 * The name is the metric label, the reason in the log, and the text in storage. Storage has names, not numbers. So a name
 * never changes its meaning, and a retired name is never used again.
 *
 * verbs: the commands that can have the outcome. ON_UNKNOWN: requests whose verb was not decoded. ON_KNOWN: all other requests.
 * ON_FENCED: commands with VERB_IS_FENCED.
 */
#define OUTCOMES(REPLY, ERROR)                                                                              \
        REPLY(DONE, "done", ON_SET | ON_KEYNOTIFY, "+OK\r\n")                                               \
        REPLY(VALUE, "value", ON_GET, "")                                                                   \
        REPLY(NO_VALUE, "no value", ON_GET, "$-1\r\n")                                                      \
        REPLY(DELETED, "deleted", ON_DEL | ON_VDEL, ":1\r\n")                                               \
        REPLY(NOTHING, "nothing", ON_DEL | ON_VDEL | ON_KEYNOTIFY, ":0\r\n")                                \
        REPLY(CONDITION_NOT_MET, "condition not met", ON_SET | ON_VDEL, ":-1\r\n")                          \
        REPLY(PAGE, "page", ON_SCAN, "")                                                                    \
        ERROR(SYNTAX_ERROR, "syntax error", ON_SET | ON_KEYNOTIFY | ON_SCAN | ON_UNKNOWN, "syntax error")   \
        ERROR(UNKNOWN_COMMAND, "unknown command", ON_UNKNOWN, "unknown command")                            \
        ERROR(WRONG_NUMBER_OF_ARGUMENTS, "wrong number of arguments", ON_KNOWN,                             \
              "wrong number of arguments")                                                                  \
        ERROR(EMPTY_KEY, "empty key", ON_KNOWN & ~ON_SCAN, "the key length is zero")                        \
        ERROR(MISSING_TIMESTAMP, "missing timestamp", ON_SET, "missing timestamp")                          \
        ERROR(MALFORMED_TIMESTAMP, "malformed timestamp", ON_KNOWN, "malformed timestamp")                  \
        ERROR(TIMESTAMP_TOO_FAR, "timestamp too far", ON_KNOWN, OUTCOME_TOO_FAR("timestamp"))               \
        ERROR(FENCE_TOO_FAR, "fence too far", ON_FENCED, OUTCOME_TOO_FAR("fencing token timestamp"))        \
        ERROR(NOT_AUTHORIZED, "not authorized", ON_KNOWN, "not authorized")                                 \
        ERROR(FENCE_REQUIRED, "fence required", ON_FENCED, "a fencing token is required for this request")  \
        ERROR(FENCE_TOO_OLD, "fence too old", ON_FENCED, OUTCOME_FENCE_LOWER("than"))                       \
        ERROR(CLIENT_UNKNOWN, "client unknown", ON_KEYNOTIFY, "the client id is missing")                   \
        ERROR(KEY_TOO_LONG_TO_NOTIFY, "key too long to notify", ON_KEYNOTIFY,                               \
              "the key is too long to be notified")                                                         \
        ERROR(QUOTA_EXCEEDED, "quota exceeded", ON_SET | ON_KEYNOTIFY, "the quota has been exceeded")       \
        ERROR(VALUE_TOO_LARGE, "value too large", ON_SET, "the value is too large")                         \
        ERROR(REPLY_TOO_LARGE, "reply too large", ON_GET | ON_SCAN, "the reply is too large")               \
        ERROR(OUT_OF_MEMORY, "out of memory", ON_KNOWN, "out of memory")                                    \
        /* the whole batch fails, with its reads: they may have read values that are not stored */          \
        ERROR(DISK_FULL, "disk full", ON_KNOWN, "the disk is full")                                         \
        ERROR(STORAGE_FAILED, "storage failed", ON_KNOWN, "the storage has failed")

#define OUTCOME_TOO_FAR(what)                                                                               \
        "the request " what " is too far in the future; "                                                   \
        "ensure that the client and broker system clocks are synchronized"

/* than: the word "than"; in the document dialect "that", because the published documentation has this spelling error. */
#define OUTCOME_FENCE_LOWER(than)                                                                           \
        "the request fencing token is a lower version " than " the fencing token protecting the resource"

enum outcome {
#define OUTCOME_ENUM(symbol, ...) OUTCOME_##symbol,
        OUTCOMES(OUTCOME_ENUM, OUTCOME_ENUM)
#undef OUTCOME_ENUM
                N_OUTCOMES,
};

/* Return whether the outcome is an ERROR of the list. */
static inline bool outcome_is_error(enum outcome outcome) {
        return outcome >= OUTCOME_SYNTAX_ERROR;
}

const char *outcome_name(enum outcome outcome);

/* Returns 0, or -EINVAL for a text that is no outcome's name. */
int outcome_from_name(struct slice name, enum outcome *ret_outcome);

/*
 * Return whether a request with this verb can have this outcome; VERB_UNKNOWN: its verb was not decoded. This ignores faults
 * that a test injects (--control): they can give an error of quota or storage to any verb.
 */
bool outcome_is_possible(enum verb verb, enum outcome outcome);
