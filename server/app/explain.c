/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>

#include "app/explain.h"
#include "base/log.h"
#include "engine/request.h"

static int print_denial(const struct config *config, enum access access) {
        printf("denied: no rule of %s grants %s\n", config->policy_file,
               access == ACCESS_READ ? "read" : "write");
        return EXIT_FAILURE;
}

/* Return the condition under which a request is granted, as the end of the message. */
static const char *condition_of_grant(const struct config *config) {
        return policy_allows_unverified(config->policy) ? "" : ", if the plugin verifies the client";
}

static void print_rule(const struct config *config, const struct policy_keys *keys) {
        struct policy_location location = policy_location(config->policy, keys);

        printf("%s:%u, rule [%s]", config->policy_file, location.line, LOG_TEXT(location.rule));
}

/*
 * SCAN is decided per key: keys that match its pattern are listed if a rule lets the client read
 * them.
 */
static int explain_scan(const struct config *config, const struct request_origin *origin) {
        const struct policy_keys *keys = NULL;

        if (!policy_grants_any(config->policy, origin, ACCESS_READ))
                return print_denial(config, ACCESS_READ);

        printf("granted: SCAN lists the keys that these rules let the client read%s\n",
               condition_of_grant(config));
        while ((keys = policy_next_keys(config->policy, origin, ACCESS_READ, keys))) {
                printf("  ");
                print_rule(config, keys);
                printf("\n");
        }
        return EXIT_SUCCESS;
}

static int explain_access(const struct config *config, const struct request_origin *origin,
                          enum access access, struct slice key) {
        uint64_t budget = POLICY_STEPS_MAX;
        const struct policy_keys *keys = policy_decide(config->policy, origin, access, key, &budget);

        if (!keys)
                return print_denial(config, access);

        printf("granted: ");
        print_rule(config, keys);
        printf("%s\n", condition_of_grant(config));
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
        return verbs[verb].flags & VERB_TAKES_PATTERN
                       ? explain_scan(config, &origin)
                       : explain_access(config, &origin, verbs[verb].access, slice_from_string(question[3]));
}
