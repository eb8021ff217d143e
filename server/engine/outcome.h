/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "base/log.h"
#include "engine/clock.h"
#include "engine/verb.h"

/*
 * The result of a request: every reply that the store can give (PROTOCOL.md "Commands" and
 * "Errors"). OUTCOMES is the only list of them. Errors are in the order of their first check,
 * except OUT_OF_MEMORY, which can occur at any time.
 *
 *   REPLY(symbol, name, verbs, built_from, payload)    payload: as sent, if it is constant
 *   ERROR(symbol, name, verbs, log, text)              text: what follows "-ERR " in the payload
 *
 * Payloads and texts are those of the sdk dialect. The encoder replaces them where the document
 * dialect differs (PROTOCOL.md "Dialects").
 *
 * The name is the metric label, the reason in the log, and the text in storage. Storage has names,
 * not numbers. So a name never changes its meaning, and a retired name is never used again.
 *
 * verbs: the commands that can have the outcome. ON_UNKNOWN: requests whose verb was not decoded.
 * ON_KNOWN: all other requests. ON_FENCED: commands with VERB_IS_FENCED. ON_STORING: those with
 * VERB_STORES_VALUE. ON_TIMED: those with VERB_NEEDS_TIMESTAMP.
 *
 * built_from: see enum payload_source. For an outcome of a command with VERB_IS_REMEMBERED,
 * outcome_is_in_result() must be true.
 *
 * log: the level of the line that a refused request gets (observation/client_log.c), or
 * OUTCOME_UNLOGGED. LOG_WARNING: the operator should investigate the store or the client.
 */
#define OUTCOMES(REPLY, ERROR)                                                                              \
        REPLY(DONE, "done", ON_SET | ON_KEYNOTIFY, CONSTANT, "+OK\r\n")                                     \
        REPLY(VALUE, "value", ON_GET, ENTRY, "")                                                            \
        REPLY(NO_VALUE, "no value", ON_GET, CONSTANT, "$-1\r\n")                                            \
        REPLY(DELETED, "deleted", ON_DEL | ON_VDEL, CONSTANT, ":1\r\n")                                     \
        REPLY(NOTHING, "nothing", ON_DEL | ON_VDEL | ON_KEYNOTIFY, CONSTANT, ":0\r\n")                      \
        REPLY(CONDITION_NOT_MET, "condition not met", ON_SET | ON_VDEL, CONSTANT, ":-1\r\n")                \
        REPLY(PAGE, "page", ON_SCAN, PAGE, "")                                                              \
        ERROR(SYNTAX_ERROR, "syntax error", ON_SET | ON_KEYNOTIFY | ON_SCAN | ON_UNKNOWN, LOG_INFO,         \
              "syntax error")                                                                               \
        ERROR(UNKNOWN_COMMAND, "unknown command", ON_UNKNOWN, LOG_INFO, "unknown command")                  \
        ERROR(WRONG_NUMBER_OF_ARGUMENTS, "wrong number of arguments", ON_KNOWN, LOG_INFO,                   \
              "wrong number of arguments")                                                                  \
        ERROR(EMPTY_KEY, "empty key", ON_KNOWN & ~ON_SCAN, LOG_INFO, "the key length is zero")              \
        ERROR(MISSING_TIMESTAMP, "missing timestamp", ON_TIMED, LOG_INFO, "missing timestamp")              \
        ERROR(MALFORMED_TIMESTAMP, "malformed timestamp", ON_KNOWN, LOG_INFO, "malformed timestamp")        \
        ERROR(TIMESTAMP_TOO_FAR, "timestamp too far", ON_KNOWN, LOG_WARNING, OUTCOME_TOO_FAR("timestamp"))  \
        ERROR(FENCE_TOO_FAR, "fence too far", ON_FENCED, LOG_WARNING,                                       \
              OUTCOME_TOO_FAR("fencing token timestamp"))                                                   \
        ERROR(NOT_AUTHORIZED, "not authorized", ON_KNOWN, LOG_WARNING, "not authorized")                    \
        ERROR(FENCE_REQUIRED, "fence required", ON_FENCED, LOG_INFO,                                        \
              "a fencing token is required for this request")                                               \
        ERROR(FENCE_TOO_OLD, "fence too old", ON_FENCED, LOG_INFO, OUTCOME_FENCE_LOWER("than"))             \
        ERROR(VERSION_CHANGED, "version changed", ON_FENCED, LOG_INFO, "the version has changed")           \
        ERROR(CLIENT_UNKNOWN, "client unknown", ON_KEYNOTIFY, LOG_INFO, "the client id is missing")         \
        ERROR(KEY_TOO_LONG_TO_NOTIFY, "key too long to notify", ON_KEYNOTIFY, LOG_INFO,                     \
              "the key is too long to be notified")                                                         \
        ERROR(QUOTA_EXCEEDED, "quota exceeded", ON_STORING | ON_KEYNOTIFY, LOG_WARNING,                     \
              "the quota has been exceeded")                                                                \
        ERROR(VALUE_TOO_LARGE, "value too large", ON_STORING, LOG_WARNING, OUTCOME_TEXT_VALUE_TOO_LARGE)    \
        ERROR(REPLY_TOO_LARGE, "reply too large", ON_GET | ON_SCAN, LOG_WARNING,                            \
              OUTCOME_TEXT_REPLY_TOO_LARGE)                                                                 \
        ERROR(OUT_OF_MEMORY, "out of memory", ON_KNOWN, LOG_ERROR, "out of memory")                         \
        /* the whole batch fails, with its reads: they may have read values that are not stored */          \
        ERROR(DISK_FULL, "disk full", ON_KNOWN, OUTCOME_UNLOGGED, "the disk is full")                       \
        ERROR(STORAGE_FAILED, "storage failed", ON_KNOWN, OUTCOME_UNLOGGED, "the storage has failed")

#define OUTCOME_TOO_FAR(what)                                                                               \
        "the request " what " is too far in the future; "                                                   \
        "ensure that the client and broker system clocks are synchronized"

/*
 * than: the word "than"; in the document dialect "that", because the published documentation has
 * this spelling error.
 */
#define OUTCOME_FENCE_LOWER(than)                                                                           \
        "the request fencing token is a lower version " than " the fencing token protecting the resource"

/* Texts that statestorectl recognizes. */
#define OUTCOME_TEXT_VALUE_TOO_LARGE "the value is too large"
#define OUTCOME_TEXT_REPLY_TOO_LARGE "the reply is too large"

enum outcome {
#define OUTCOME_ENUM(symbol, ...) OUTCOME_##symbol,
        OUTCOMES(OUTCOME_ENUM, OUTCOME_ENUM)
#undef OUTCOME_ENUM
                N_OUTCOMES,
};

/* What the payload of a reply is built from. The compiler names each place that must treat a new one. */
enum payload_source {
        PAYLOAD_CONSTANT,
        PAYLOAD_ENTRY, /* reply->entry, which the reply owns */
        PAYLOAD_PAGE,  /* reply->page, which the reply owns */
};

#define OUTCOME_UNLOGGED (-1)

/* The rows of OUTCOMES. */
extern const struct outcome_properties {
        const char *name;
        unsigned int verbs;
        enum payload_source built_from;
        int log_level; /* enum log_level, or OUTCOME_UNLOGGED */
} outcomes[N_OUTCOMES];

/* Return whether the outcome is an ERROR of the list. */
static inline bool outcome_is_error(enum outcome outcome) {
        return outcome >= OUTCOME_SYNTAX_ERROR;
}

const char *outcome_name(enum outcome outcome);

/*
 * What a repeated request gets again: the part of a reply that the engine remembers (engine/dedup.h) and
 * that a storage stores (storage/stored_form.h). Whatever the payload of a remembered reply is built from
 * must be here.
 */
struct result {
        struct version version; /* if has_version */
        enum outcome outcome;
        bool has_version;
};

/* Return whether the payload can be built from a struct result alone. Others cannot be remembered. */
static inline bool outcome_is_in_result(enum outcome outcome) {
        return outcomes[outcome].built_from != PAYLOAD_ENTRY && outcomes[outcome].built_from != PAYLOAD_PAGE;
}

/* Returns 0, or -EINVAL for a text that is no outcome's name. */
int outcome_from_name(struct slice name, enum outcome *ret_outcome);

/*
 * Return whether a request with this verb can have this outcome; VERB_UNKNOWN: its verb was not
 * decoded. This ignores faults that a test injects (--control): they can give an error of quota or
 * storage to any verb.
 */
bool outcome_is_possible(enum verb verb, enum outcome outcome);
