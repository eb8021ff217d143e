/* SPDX-License-Identifier: Apache-2.0 */

/* The rest of the behaviour of supervisor.h: tests/integration/ctl/test_ctl_lock.py. */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
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
        if (fork() == 0) { /* a supervisor ignores signals of its own process */
                kill(getppid(), SIGTERM);
                _exit(EXIT_SUCCESS);
        }
        while (supervisor_signal(supervisor) == 0)
                ;

        cr_assert_eq(supervisor_signal(supervisor), SIGTERM);
        cr_assert_eq(supervisor_start(supervisor, endless, lease_in(LONG_NS, LONG_NS)), -EINTR);
        cr_assert_not(supervisor_result(supervisor).has_ended);
        supervisor_free(supervisor);
}

/* Make a new terminal that of this process, in a session of its own. */
static bool use_terminal(void) {
        int terminal = posix_openpt(O_RDWR | O_NOCTTY);

        return terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0 && setsid() >= 0 &&
               dup2(open(ptsname(terminal), O_RDWR), STDIN_FILENO) == STDIN_FILENO;
}

static bool is_pending(int signal_number) {
        sigset_t pending;

        sigpending(&pending);
        return sigismember(&pending, signal_number);
}

/*
 * The terminal has sent the signal to the group of the program only, so the supervisor repeats it for its
 * own group. Return whether it does not take it for one that another process has sent.
 */
static bool repeats_a_typed_signal(struct supervisor *supervisor) {
        char *const arguments[] = { "sh", "-c", "kill -INT $$", NULL };

        if (supervisor_start(supervisor, arguments, lease_in(LONG_NS, LONG_NS)) < 0)
                return false;
        supervisor_wait(supervisor);
        while (is_pending(SIGINT)) /* until the supervisor has read it */
                sched_yield();
        return supervisor_result(supervisor).terminal_signal == SIGINT && supervisor_signal(supervisor) == 0;
}

/* It would interrupt the release of the lock. */
Test(supervisor, takes_no_signal_of_its_own) {
        pid_t pid = fork(); /* the first process of a session must not be the leader of a group */
        int status;

        if (pid == 0) {
                struct supervisor *supervisor;

                signal(SIGINT, SIG_DFL); /* a shell ignores it for what runs in the background */
                _exit(use_terminal() && supervisor_new(&supervisor) == 0 &&
                                      repeats_a_typed_signal(supervisor)
                              ? EXIT_SUCCESS
                              : EXIT_FAILURE);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_expect_eq(status, EXIT_SUCCESS);
}
