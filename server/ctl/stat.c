/* SPDX-License-Identifier: Apache-2.0 */

/* The command stat. */

#include "base/cleanup.h"
#include "base/system_clock.h"
#include "ctl/report.h"
#include "ctl/run.h"
#include "ctl/store_metrics.h"

enum exit_code command_stat(struct command_run *run) {
        CLEANUP(samples_deinit) struct samples samples = { 0 };
        struct store_metrics_problem problem;
        double now_s;

        if (store_metrics_read(run->options, &samples, &problem) < 0) {
                complain("%s", problem.text);
                return EXIT_NO_REPLY;
        }

        now_s = (double)system_clock_wall_ms() / 1e3;
        if (run->options->json)
                report_append_json(&run->output, &samples, now_s);
        else
                report_append(&run->output, &samples, now_s);
        output_write(&run->output);
        return EXIT_DONE;
}
