/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "base/json.h"
#include "base/system_clock.h"
#include "ctl/command_run.h"
#include "ctl/output.h"

/* The store is at one of the brokers; another may be there without it. *ret_sent_ns: when who answered was asked. */
static enum connection_result ask_everywhere(struct command_run *task, const struct session_request *request,
                                             int64_t *ret_sent_ns, struct session_reply *ret_reply) {
        enum connection_result result;

        do {
                *ret_sent_ns = system_clock_mono_ns();
                result = session_request(task->session, request, ret_reply);
        } while (result == CONNECTION_TIME_OVER &&
                 session_connect_elsewhere(task->session) == CONNECTION_OK);
        return result;
}

enum exit_code command_ping(struct command_run *task) {
        struct session_request request = {
                .timeout_ms = task->options->timeout_ms / (int64_t)task->options->n_endpoints,
        };
        const char *who = "the store";
        struct session_reply reply;
        int64_t sent_ns;
        char text[64];
        double rtt_ms;

        /* a key that nobody has: the answer is as short as can be, and whatever it is the store is there */
        session_request_add(&request, SLICE_LITERAL("GET"));
        session_request_add(&request, slice_from_string(task->options->client_id));
        if (ask_everywhere(task, &request, &sent_ns, &reply) != CONNECTION_OK) {
                complain("%s", session_problem(task->session));
                return EXIT_NO_ANSWER;
        }
        rtt_ms = (double)(system_clock_mono_ns() - sent_ns) / 1e6;

        if (task->options->json) {
                snprintf(text, sizeof(text), "%.3f", rtt_ms);
                json_begin(&task->output);
                json_add_bytes(&task->output, "from", reply.source, false);
                json_add_raw(&task->output, "rtt_ms", text);
                json_end(&task->output);
        } else {
                snprintf(text, sizeof(text), " in %.*f ms\n", rtt_ms < 10 ? 2 : 0, rtt_ms);
                buf_append_string(&task->output, "pong from ");
                append_printable(&task->output, reply.source.data ? reply.source : slice_from_string(who),
                                 false);
                buf_append_string(&task->output, text);
        }
        output_write(&task->output);
        return EXIT_DONE;
}
