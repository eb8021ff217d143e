/* SPDX-License-Identifier: Apache-2.0 */

#include "explain.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "core/request.h"

static bool find_access(const char *verb, enum access *ret_access) {
        static const struct {
                const char *name;
                enum verb verb;
        } verbs[] = {
                { "SET", VERB_SET },
                { "GET", VERB_GET },
                { "DEL", VERB_DEL },
                { "VDEL", VERB_VDEL },
                { "KEYNOTIFY", VERB_KEYNOTIFY },
                { "SCAN", VERB_SCAN },
        };

        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (strcmp(verb, verbs[i].name) == 0) {
                        *ret_access = verb_access(verbs[i].verb);
                        return true;
                }
        return false;
}

int explain(const struct config *config) {
        const char *const *question = config->explain;
        const struct asker asker = { slice_from_string(question[0]), slice_from_string(question[1]), true };
        const struct policy_keys *keys;
        uint64_t budget = POLICY_STEPS_MAX;
        struct policy_reason reason;
        enum access access;

        if (!find_access(question[2], &access)) {
                fprintf(stderr,
                        "statestored: --explain: SET, GET, DEL, VDEL, KEYNOTIFY or SCAN was expected, not "
                        "\"%s\"\n",
                        LOG_TEXT(slice_from_string(question[2])));
                return 2;
        }
        if (!config->policy) {
                printf("granted: there is no policy\n");
                return EXIT_SUCCESS;
        }

        keys = policy_decide(config->policy, &asker, access, slice_from_string(question[3]), &budget);
        if (!keys) {
                printf("denied: no rule of %s grants %s\n", config->policy_file,
                       access == ACCESS_READ ? "read" : "write");
                return EXIT_FAILURE;
        }
        reason = policy_reason(config->policy, keys);
        printf("granted: %s:%u, rule [%s]%s\n", config->policy_file, reason.line, LOG_TEXT(reason.rule),
               policy_allows_unverified(config->policy) ? "" : "; if the broker verifies who asks");
        return EXIT_SUCCESS;
}
