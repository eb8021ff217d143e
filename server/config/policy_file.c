/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A section is a rule; its name is for messages. Its lines may come in any order. All except `access` may be
 * repeated.
 */

#include "config/policy_file.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/ini_file.h"
#include "policy/policy_build.h"

struct reading {
        const char *name;
        const struct policy_file_sink *sink;
        struct policy *policy; /* NULL: out of memory */
        bool is_wrong;
        bool is_starved; /* out of memory: skip the rest */

        void *rule_names; /* tree of tsearch() */

        /* of the current rule */
        unsigned int rule_line;   /* 0: no rule yet */
        unsigned int access_line; /* 0: not given yet, likewise below */
        bool has_holder, has_keys;
};

static const char *const outcome_texts[N_POLICY_OUTCOMES] = {
        [POLICY_EMPTY] = "a value was expected",
        [POLICY_NOT_UTF8] = "UTF-8 was expected; for other keys use binary = BASE64",
        [POLICY_OPEN_CLASS] = "']' is missing; write [[] for a bracket",
        [POLICY_PLACEHOLDER_IN_CLASS] = "{client} and {user} cannot stand inside brackets",
        [POLICY_UNKNOWN_PLACEHOLDER] = "{client} or {user} was expected; in a pattern write [{] for a brace",
        [POLICY_TOO_MANY_PLACEHOLDERS] = "{client} and {user} were expected at most four times",
        [POLICY_TOO_MANY] = "the policy is too large",
};

static void fault(struct reading *reading, unsigned int line, const char *what) {
        reading->is_wrong = true;
        reading->sink->fault(reading->sink->userdata, ini_place(reading->name, line).text, what);
}

/* r: result of a policy_add function. */
static void expect_done(struct reading *reading, unsigned int line, int r) {
        if (r > POLICY_DONE)
                fault(reading, line, outcome_texts[r]);
        if (r < 0)
                fault(reading, line, "out of memory");
        reading->is_starved |= r < 0;
}

static void end_rule(struct reading *reading) {
        if (reading->rule_line == 0 || reading->is_starved)
                return;
        if (reading->access_line == 0)
                fault(reading, reading->rule_line,
                      "the rule grants nothing: access = read, write or readwrite was "
                      "expected");
        if (!reading->has_holder)
                fault(reading, reading->rule_line,
                      "the rule names no client: client = ID, user = NAME or any = yes was expected");
        if (!reading->has_keys)
                fault(reading, reading->rule_line,
                      "the rule names no keys: pattern, string or binary was expected");
}

struct rule_name {
        unsigned int line;
        char name[];
};

static int compare_names(const void *a, const void *b) {
        return strcmp(((const struct rule_name *)a)->name, ((const struct rule_name *)b)->name);
}

/* Two rules of the same name are a fault: an operator who edits one of them may not know of the other. */
static void expect_new_name(struct reading *reading, const char *name, unsigned int line) {
        struct rule_name *given = malloc(sizeof(*given) + strlen(name) + 1);
        struct rule_name *const *first = NULL;
        char text[256];

        if (given) {
                given->line = line;
                strcpy(given->name, name);
                first = tsearch(given, &reading->rule_names, compare_names);
        }
        if (!first) {
                expect_done(reading, line, -ENOMEM);
        } else if (*first != given) {
                snprintf(text, sizeof(text), "a unique name was expected; [%s] is also in line %u",
                         LOG_TEXT(slice_from_string(name)), (*first)->line);
                fault(reading, line, text);
        }
        if (!first || *first != given)
                free(given);
}

static void begin_rule(void *userdata, const char *name, unsigned int line) {
        struct reading *reading = userdata;

        end_rule(reading);
        if (reading->is_starved)
                return;
        reading->rule_line = line;
        reading->access_line = 0;
        reading->has_holder = reading->has_keys = false;
        expect_done(reading, line, policy_add_rule(reading->policy, slice_from_string(name)));
        if (!reading->is_starved)
                expect_new_name(reading, name, line);
}

static void take_access(struct reading *reading, const char *value, unsigned int line) {
        static const struct {
                const char *name;
                enum access access;
        } accesses[] = { { "read", ACCESS_READ },
                         { "write", ACCESS_WRITE },
                         { "readwrite", ACCESS_READWRITE } };
        char text[128];

        if (reading->access_line > 0) {
                snprintf(text, sizeof(text), "access is given twice, first in line %u",
                         reading->access_line);
                fault(reading, line, text);
                return;
        }
        reading->access_line = line;
        for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++)
                if (strcmp(value, accesses[i].name) == 0) {
                        policy_set_access(reading->policy, accesses[i].access);
                        return;
                }
        fault(reading, line, "read, write or readwrite was expected");
}

static void take_any(struct reading *reading, const char *value, unsigned int line) {
        reading->has_holder = true;
        if (strcmp(value, "yes") == 0)
                expect_done(reading, line,
                            policy_add_holder(reading->policy, POLICY_ANYONE, (struct slice){ 0 }));
        else
                fault(reading, line, "any = yes was expected");
}

static void add_named(struct reading *reading, enum policy_holder_kind kind, const char *value,
                      unsigned int line) {
        reading->has_holder = true;
        if (strcmp(value, "*") == 0)
                fault(reading, line, "a literal name was expected; for all clients write any = yes");
        else
                expect_done(reading, line,
                            policy_add_holder(reading->policy, kind, slice_from_string(value)));
}

static void take_client(struct reading *reading, const char *value, unsigned int line) {
        add_named(reading, POLICY_CLIENT, value, line);
}

static void take_user(struct reading *reading, const char *value, unsigned int line) {
        add_named(reading, POLICY_USER, value, line);
}

static void take_pattern(struct reading *reading, const char *value, unsigned int line) {
        reading->has_keys = true;
        expect_done(reading, line,
                    policy_add_keys(reading->policy, POLICY_PATTERN, slice_from_string(value), line));
}

static void take_string(struct reading *reading, const char *value, unsigned int line) {
        reading->has_keys = true;
        expect_done(reading, line,
                    policy_add_keys(reading->policy, POLICY_STRING, slice_from_string(value), line));
}

static void take_binary(struct reading *reading, const char *value, unsigned int line) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        int r = base64_append_decoded(&bytes, slice_from_string(value));

        reading->has_keys = true;
        if (r == -EINVAL)
                fault(reading, line, "base64 was expected");
        else
                expect_done(
                        reading, line,
                        r < 0 ? r
                              : policy_add_keys(reading->policy, POLICY_BINARY, buf_slice(&bytes), line));
}

static void take_line(void *userdata, const char *section, const char *name, const char *value,
                      unsigned int line) {
        static const struct {
                const char *name;
                void (*take)(struct reading *reading, const char *value, unsigned int line);
        } lines[] = {
                { "access", take_access }, { "any", take_any },         { "client", take_client },
                { "user", take_user },     { "pattern", take_pattern }, { "string", take_string },
                { "binary", take_binary },
        };
        struct reading *reading = userdata;
        char text[256];

        (void)section;
        if (reading->is_starved)
                return;
        if (reading->rule_line == 0) {
                fault(reading, line, "[RULE] was expected before this line");
                return;
        }
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
                if (strcmp(name, lines[i].name) == 0) {
                        lines[i].take(reading, value, line);
                        return;
                }
        snprintf(text, sizeof(text),
                 "access, any, client, user, pattern, string or binary was expected, not \"%s\"",
                 LOG_TEXT(slice_from_string(name)));
        fault(reading, line, text);
}

static void take_fault(void *userdata, const char *where, const char *what) {
        struct reading *reading = userdata;

        reading->is_wrong = true;
        reading->sink->fault(reading->sink->userdata, where, what);
}

struct policy *policy_file_read(const char *name, bool allows_unverified,
                                const struct policy_file_sink *sink) {
        struct reading reading = { .name = name, .sink = sink };
        struct ini_sink lines = {
                .section = begin_rule, .value = take_line, .fault = take_fault, .userdata = &reading
        };

        if (policy_new(&reading.policy) < 0) {
                take_fault(&reading, name, "out of memory");
                return NULL;
        }

        ini_file_read(name, &lines);
        tdestroy(reading.rule_names, free);
        end_rule(&reading);
        if (!reading.is_wrong)
                expect_done(&reading, reading.rule_line, policy_compile(reading.policy, allows_unverified));
        if (!reading.is_wrong)
                return reading.policy;

        policy_free(reading.policy);
        return NULL;
}
