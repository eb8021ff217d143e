/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Log lines of refused requests are limited per client, so that one client does not suppress the
 * lines of others.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "base/time_units.h"
#include "observation/client_log.h"
#include "unit/engine/world.h"
#include "unit/support/capture.h"

#define N_REFUSED 1000
#define N_CLIENTS 64

static struct world world;
static struct client_log client_log;

static void refuse(const char *client, unsigned n) {
        static const enum outcome refusals[] = { OUTCOME_NOT_AUTHORIZED, OUTCOME_SYNTAX_ERROR,
                                                 OUTCOME_QUOTA_EXCEEDED };
        struct invocation invocation = { .request = GET("key"), .fault = REQUEST_FAULT_NONE + 1 };

        invocation.request.client = slice_from_string(client);
        switch (n % 5) {
        case 3:
                client_log_fault(&client_log, world.engine, &invocation);
                break;
        case 4:
                client_log_invalid_response_topic(&client_log, world.engine, &invocation.request);
                break;
        default:
                client_log_refusal(&client_log, world.engine, &invocation.request, refusals[n % 5],
                                   world.now);
        }
}

/*
 * Log lines within one second of a client that is refused often, and of many clients that are
 * refused once.
 */
static char *print_flood(void) {
        for (;;) {
                int64_t began_s = system_clock_mono_ns() / NS_PER_S;
                struct capture capture;
                char *printed;

                client_log = (struct client_log){ 0 };
                capture_start(&capture, STDERR_FILENO);
                for (unsigned i = 0; i < N_REFUSED; i++)
                        refuse("hostile", i);
                for (unsigned i = 0; i < N_CLIENTS; i++) {
                        char client[16];

                        snprintf(client, sizeof(client), "client-%u", i);
                        refuse(client, i);
                }
                printed = capture_end(&capture);
                if (system_clock_mono_ns() / NS_PER_S == began_s)
                        return printed;
                free(printed);
        }
}

Test(client_log, lines_of_one_client_are_limited_across_reasons) {
        char *printed;

        world_init(&world, world_config());
        printed = print_flood();
        cr_expect_eq(capture_count(printed, "client=hostile"), LOG_LIMIT_BURST, "%s", printed);
        free(printed);
        world_deinit(&world);
}

/* Of 64 clients with fixed ids and a fixed key, fewer than 8 share the limit of the hostile one. */
Test(client_log, flooding_client_does_not_suppress_lines_of_others) {
        char *printed;

        world_init(&world, world_config());
        printed = print_flood();
        cr_expect_gt(capture_count(printed, "client=client-"), N_CLIENTS - 8, "%s", printed);
        free(printed);
        world_deinit(&world);
}
