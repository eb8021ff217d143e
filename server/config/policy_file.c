/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A section is a rule; messages contain the name of the section. The lines of a section may have
 * any order. Each line may be repeated, except `access`.
 */

#include "config/policy_file.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "base/log.h"
#include "config/ini_file.h"
#include "policy/policy_build.h"

struct policy_reading {
        const char *name;
        policy_file_fault *take_fault;
        void *userdata; /* of take_fault() */
        struct policy *policy;
        bool is_invalid;
        bool is_out_of_memory; /* skip the rest of the file */

        void *rule_names; /* tree of tsearch() */

        /* state of the current rule */
        unsigned int rule_line;   /* 0: no rule yet */
        unsigned int access_line; /* of the line `access`; 0: not given yet */
        bool has_principal, has_keys;
};

static const char *const outcome_texts[N_POLICY_OUTCOMES] = {
        [POLICY_EMPTY] = "a value was expected",
        [POLICY_NOT_UTF8] = "UTF-8 was expected; for other keys use binary = BASE64",
        [POLICY_PLACEHOLDER_IN_CLASS] = "{client} and {user} cannot stand inside brackets",
        [POLICY_ATTRIBUTE_PLACEHOLDER] = "attributes of clients are not known here: write {client} or "
                                         "{user}, or a rule with client = ID "
                                         "or user = NAME for each client that has the attribute",
        [POLICY_UNKNOWN_PLACEHOLDER] = "{client} or {user} was expected; for the character '{' write [{] in "
                                       "a pattern, or the key as "
                                       "binary = BASE64",
        [POLICY_TOO_MANY_PLACEHOLDERS] = "{client} and {user} were expected at most four times",
        [POLICY_TOO_MANY] = "the policy is too large",
};

static void report_policy_fault(void *userdata, const char *where, const char *what) {
        struct policy_reading *reading = userdata;

        reading->is_invalid = true;
        reading->take_fault(reading->userdata, where, what);
}

static void report_rule_fault(struct policy_reading *reading, unsigned int line, const char *what) {
        report_policy_fault(reading, ini_position(reading->name, line).text, what);
}

static const char *outcome_text(enum policy_outcome outcome) {
        if (outcome == POLICY_OPEN_CLASS)
                return glob_fault_text(GLOB_OPEN_CLASS);
        if (outcome == POLICY_MISPLACED_STARS)
                return glob_fault_text(GLOB_MISPLACED_STARS);
        return outcome_texts[outcome];
}

/* Report the result r of a policy_add_*() function or of policy_compile(), unless it is success. */
static void report_failed_result(struct policy_reading *reading, unsigned int line, int r) {
        if (r > POLICY_DONE)
                report_rule_fault(reading, line, outcome_text((enum policy_outcome)r));
        if (r < 0)
                report_rule_fault(reading, line, "out of memory");
        reading->is_out_of_memory |= r < 0;
}

static void end_rule(struct policy_reading *reading) {
        if (reading->rule_line == 0 || reading->is_out_of_memory)
                return;
        if (reading->access_line == 0)
                report_rule_fault(reading, reading->rule_line,
                                  "the rule grants nothing: access = read, write or readwrite was "
                                  "expected");
        if (!reading->has_principal)
                report_rule_fault(
                        reading, reading->rule_line,
                        "the rule names no client: client = ID, user = NAME or any = yes was expected");
        if (!reading->has_keys)
                report_rule_fault(reading, reading->rule_line,
                                  "the rule names no keys: pattern, string or binary was expected");
}

struct rule_name {
        unsigned int line;
        char name[];
};

static int compare_names(const void *a, const void *b) {
        return strcmp(((const struct rule_name *)a)->name, ((const struct rule_name *)b)->name);
}

/*
 * Two rules of the same name are a fault: an operator who edits one of them may not know of the
 * other.
 */
static void check_name_is_new(struct policy_reading *reading, const char *name, unsigned int line) {
        struct rule_name *given = malloc(sizeof(*given) + strlen(name) + 1);
        struct rule_name *const *first = NULL;
        char text[256];

        if (given) {
                given->line = line;
                strcpy(given->name, name);
                first = tsearch(given, &reading->rule_names, compare_names);
        }
        if (!first) {
                report_failed_result(reading, line, -ENOMEM);
        } else if (*first != given) {
                snprintf(text, sizeof(text), "a unique name was expected; [%s] is also in line %u",
                         LOG_STRING(name), (*first)->line);
                report_rule_fault(reading, line, text);
        }
        if (!first || *first != given)
                free(given);
}

static void begin_rule(void *userdata, const char *name, unsigned int line) {
        struct policy_reading *reading = userdata;

        end_rule(reading);
        if (reading->is_out_of_memory)
                return;
        reading->rule_line = line;
        reading->access_line = 0;
        reading->has_principal = reading->has_keys = false;
        report_failed_result(reading, line, policy_add_rule(reading->policy, slice_from_string(name)));
        if (!reading->is_out_of_memory)
                check_name_is_new(reading, name, line);
}

static void read_access(struct policy_reading *reading, const char *value, unsigned int line) {
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
                report_rule_fault(reading, line, text);
                return;
        }
        reading->access_line = line;
        for (size_t i = 0; i < ARRAY_LENGTH(accesses); i++)
                if (strcmp(value, accesses[i].name) == 0) {
                        policy_set_access(reading->policy, accesses[i].access);
                        return;
                }
        report_rule_fault(reading, line, "read, write or readwrite was expected");
}

static void read_any_principal(struct policy_reading *reading, const char *value, unsigned int line) {
        reading->has_principal = true;
        if (strcmp(value, "yes") == 0)
                report_failed_result(
                        reading, line,
                        policy_add_principal(reading->policy, POLICY_ANYONE, (struct slice){ 0 }));
        else
                report_rule_fault(reading, line, "any = yes was expected");
}

static void add_named_principal(struct policy_reading *reading, enum policy_principal_kind kind,
                                const char *value, unsigned int line) {
        reading->has_principal = true;
        if (strcmp(value, "*") == 0)
                report_rule_fault(reading, line,
                                  "a literal name was expected; for all clients write any = yes");
        else
                report_failed_result(reading, line,
                                     policy_add_principal(reading->policy, kind, slice_from_string(value)));
}

static void add_keys(struct policy_reading *reading, enum policy_keys_kind kind, struct slice keys,
                     unsigned int line) {
        reading->has_keys = true;
        report_failed_result(reading, line, policy_add_keys(reading->policy, kind, keys, line));
}

static void read_binary_key(struct policy_reading *reading, const char *value, unsigned int line) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        int r = base64_append_decoded(&bytes, slice_from_string(value));

        reading->has_keys = true;
        if (r == -EINVAL)
                report_rule_fault(reading, line, "base64 was expected");
        else if (r < 0)
                report_failed_result(reading, line, r);
        else
                add_keys(reading, POLICY_BINARY, buf_slice(&bytes), line);
}

static void policy_file_on_value(void *userdata, const char *section, const char *name, const char *value,
                                 unsigned int line) {
        struct policy_reading *reading = userdata;
        char text[256];

        (void)section;
        if (reading->is_out_of_memory)
                return;
        if (reading->rule_line == 0) {
                report_rule_fault(reading, line, "[RULE] was expected before this line");
        } else if (strcmp(name, "access") == 0) {
                read_access(reading, value, line);
        } else if (strcmp(name, "any") == 0) {
                read_any_principal(reading, value, line);
        } else if (strcmp(name, "client") == 0) {
                add_named_principal(reading, POLICY_CLIENT, value, line);
        } else if (strcmp(name, "user") == 0) {
                add_named_principal(reading, POLICY_USER, value, line);
        } else if (strcmp(name, "pattern") == 0) {
                add_keys(reading, POLICY_PATTERN, slice_from_string(value), line);
        } else if (strcmp(name, "string") == 0) {
                add_keys(reading, POLICY_STRING, slice_from_string(value), line);
        } else if (strcmp(name, "binary") == 0) {
                read_binary_key(reading, value, line);
        } else {
                snprintf(text, sizeof(text),
                         "access, any, client, user, pattern, string or binary was expected, not \"%s\"",
                         LOG_STRING(name));
                report_rule_fault(reading, line, text);
        }
}

struct policy *policy_file_read(const char *name, bool allows_unverified, policy_file_fault *take_fault,
                                void *userdata) {
        struct policy_reading reading = { .name = name, .take_fault = take_fault, .userdata = userdata };
        struct ini_sink lines = { .section = begin_rule,
                                  .value = policy_file_on_value,
                                  .fault = report_policy_fault,
                                  .userdata = &reading };

        if (policy_new(&reading.policy) < 0) {
                report_policy_fault(&reading, name, "out of memory");
                return NULL;
        }

        ini_file_read(name, &lines);
        tdestroy(reading.rule_names, free);
        end_rule(&reading);
        if (!reading.is_invalid)
                report_failed_result(&reading, reading.rule_line,
                                     policy_compile(reading.policy, allows_unverified));
        if (!reading.is_invalid)
                return reading.policy;

        policy_free(reading.policy);
        return NULL;
}
