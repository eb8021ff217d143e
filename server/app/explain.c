/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>

#include "app/explain.h"
#include "base/log.h"
#include "engine/request.h"

static int explain_access(const struct config *config, const struct request_origin *origin,
                          enum access access, struct slice key) {
        uint64_t budget = POLICY_STEPS_MAX;
        const struct policy_keys *keys = policy_decide(config->policy, origin, access, key, &budget);
        struct policy_location location;

        if (!keys) {
                printf("denied: no rule of %s grants %s\n", config->policy_file,
                       access == ACCESS_READ ? "read" : "write");
                return EXIT_FAILURE;
        }
        location = policy_location(config->policy, keys);
        printf("granted: %s:%u, rule [%s]%s\n", config->policy_file, location.line, LOG_TEXT(location.rule),
               config->allow_unverified ? "" : ", if the plugin verifies the client");
        return EXIT_SUCCESS;
}

int explain(const struct config *config) {
        const char *const *question = config->explain;
        const struct request_origin origin = { slice_from_string(question[0]),
                                               slice_from_string(question[1]), true };
        enum verb verb;

        if (!verb_from_text(slice_from_string(question[2]), &verb)) {
                fprintf(stderr, "statestored: --explain: " VERBS_EXPECTED ", not \"%s\"\n",
                        LOG_STRING(question[2]));
                return EXIT_INVALID_CONFIG;
        }
        if (!config->policy) {
                printf("granted: there is no policy\n");
                return EXIT_SUCCESS;
        }
        return explain_access(config, &origin, verbs[verb].access, slice_from_string(question[3]));
}
