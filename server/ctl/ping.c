/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <time.h>

#include "common/json.h"
#include "ctl/output.h"
#include "ctl/task.h"

enum exit_code command_ping(struct task *task) {
        struct session_request request = { 0 };
        const char *who = "the store";
        struct timespec sent, answered;
        struct session_reply reply;
        char text[64];
        double rtt_ms;

        /* a key that nobody has: the answer is as short as can be, and whatever it is the store is there */
        session_request_add(&request, SLICE_LITERAL("GET"));
        session_request_add(&request, slice_from_string(task->options->client_id));
        clock_gettime(CLOCK_MONOTONIC, &sent);
        if (session_request(task->session, &request, &reply) != CONNECTION_OK) {
                complain("%s", session_problem(task->session));
                return EXIT_NO_ANSWER;
        }
        clock_gettime(CLOCK_MONOTONIC, &answered);
        rtt_ms = (double)(answered.tv_sec - sent.tv_sec) * 1e3 +
                 (double)(answered.tv_nsec - sent.tv_nsec) / 1e6;

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
