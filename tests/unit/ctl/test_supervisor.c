/* SPDX-License-Identifier: Apache-2.0 */

/* The rest of the behaviour of supervisor.h: tests/integration/ctl/test_ctl_lock.py. */

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/supervisor.h"

/* Longer than the test. */
#define LONG_NS (3600 * NS_PER_S)

static char *const endless[] = { "sleep", "3600", NULL };

static struct supervisor_lease lease_in(int64_t terminate_in_ns, int64_t kill_in_ns) {
        int64_t now_ns = system_clock_boot_ns();

        return (struct supervisor_lease){ now_ns + terminate_in_ns, now_ns + kill_in_ns };
}

static struct supervisor_result run(char *const *arguments, struct supervisor_lease lease) {
        struct supervisor_result result;
        struct supervisor *supervisor;

        cr_assert_eq(supervisor_new(&supervisor), 0);
        cr_assert_eq(supervisor_start(supervisor, arguments, lease), 0);
        supervisor_wait(supervisor);
        result = supervisor_result(supervisor);
        supervisor_free(supervisor);
        return result;
}

Test(supervisor, reports_the_status_of_the_program) {
        char *const arguments[] = { "sh", "-c", "exit 3", NULL };
        struct supervisor_result result = run(arguments, lease_in(LONG_NS, LONG_NS));

        cr_assert_not(result.is_lost);
        cr_assert(WIFEXITED(result.status));
        cr_assert_eq(WEXITSTATUS(result.status), 3);
}

Test(supervisor, terminates_the_program_before_it_is_killed) {
        struct supervisor_result result = run(endless, lease_in(0, LONG_NS));

        cr_assert(result.is_lost);
        cr_assert(WIFSIGNALED(result.status));
        cr_assert_eq(WTERMSIG(result.status), SIGTERM);
}

Test(supervisor, kills_a_program_whose_lease_has_ended) {
        struct supervisor_result result = run(endless, lease_in(0, 0));

        cr_assert(result.is_lost);
        cr_assert(WIFSIGNALED(result.status));
        cr_assert_eq(WTERMSIG(result.status), SIGKILL);
}

Test(supervisor, ignores_a_renewal_that_was_sent_too_late) {
        struct supervisor_lease lease = lease_in(100 * NS_PER_MS, LONG_NS);
        struct supervisor *supervisor;

        cr_assert_eq(supervisor_new(&supervisor), 0);
        cr_assert_eq(supervisor_start(supervisor, endless, lease), 0);
        supervisor_extend(supervisor, lease.terminate_ns, lease_in(LONG_NS, LONG_NS));

        supervisor_wait(supervisor);
        cr_assert(supervisor_result(supervisor).is_lost);
        supervisor_free(supervisor);
}

Test(supervisor, starts_no_program_after_a_signal) {
        struct supervisor *supervisor;

        cr_assert_eq(supervisor_new(&supervisor), 0);
        kill(getpid(), SIGTERM);
        while (supervisor_signal(supervisor) == 0)
                ;

        cr_assert_eq(supervisor_signal(supervisor), SIGTERM);
        cr_assert_eq(supervisor_start(supervisor, endless, lease_in(LONG_NS, LONG_NS)), -EINTR);
        cr_assert_not(supervisor_result(supervisor).has_ended);
        supervisor_free(supervisor);
}
