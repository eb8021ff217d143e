/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Runs a program, and ends it before its lease ends. A thread of its own does this, so that a slow
 * network, for example a name lookup, cannot delay it. The thread also receives the signals of the
 * process: SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2, unless they were ignored before.
 * It forwards them to the program. While no program runs, a signal interrupts.
 *
 * The program is the leader of a process group. It gets the terminal if this process is in the
 * foreground: Ctrl-C and Ctrl-Z are for its group. If it is stopped, this process and the other
 * processes of its group stop, too.
 *
 * Times are those of system_clock_boot_ns(). A lease goes on while this machine is suspended, so the
 * clock of its deadline must not stop, as CLOCK_MONOTONIC does, or be set, as CLOCK_REALTIME can be.
 *
 * The program ends with this process, also after kill -9: the kernel kills it (PR_SET_PDEATHSIG).
 * Its descendants then remain. When its lease is lost, its process group is ended. One process has one
 * supervisor.
 */
struct supervisor;

/*
 * Call before other threads start: they inherit the blocked signals. The program inherits the
 * descriptors that are open now, and no others. Returns 0 or -errno.
 */
int supervisor_new(struct supervisor **ret_supervisor);

/* No program may be running. The signals stay blocked. Accepts NULL, returns NULL. */
struct supervisor *supervisor_free(struct supervisor *supervisor);

/*
 * Readable while there is an interruption: a signal while no program runs, the alarm, or the end of
 * the program. For struct store_client_config.
 */
int supervisor_interrupt_fd(const struct supervisor *supervisor);

/* End the interruption. A new one may follow. */
void supervisor_clear_interruption(struct supervisor *supervisor);

/* The number of the first signal while no program ran; 0: none. */
int supervisor_signal(struct supervisor *supervisor);

/* Interrupt at this time, unless a program has started before. */
void supervisor_set_alarm(struct supervisor *supervisor, int64_t at_ns);

/* When the program gets SIGTERM and SIGKILL. */
struct supervisor_lease {
        int64_t terminate_ns, kill_ns;
};

/*
 * Start a program, which is searched in PATH, with the environment of this process. If it cannot be
 * executed, a message is printed, and it ends with status 127 (not found) or 126. Call from the main
 * thread: the kernel kills the program when the calling thread ends. Returns 0, -EINTR after a
 * signal, or the -errno of fork().
 */
int supervisor_start(struct supervisor *supervisor, char *const *arguments, struct supervisor_lease lease);

/*
 * The lease was renewed. renewed_ns: when the renewal was sent. Does nothing if the program was to
 * be terminated by then, because another client may have had the lock in between.
 */
void supervisor_extend(struct supervisor *supervisor, int64_t renewed_ns, struct supervisor_lease lease);

/* Another client has the lock: kill the process group of the program at once. */
void supervisor_kill(struct supervisor *supervisor);

/* Wait until the program has ended. */
void supervisor_wait(struct supervisor *supervisor);

/* What has become of the program. */
struct supervisor_result {
        bool has_ended;
        bool is_lost; /* the program was terminated or killed because of its lease */
        int status;   /* of waitpid(), if it has ended */

        /*
         * The number of the signal that ended the program, if a user typed it (Ctrl-C, Ctrl-\); else 0.
         * The other processes of this group get it, too. A shell ends a loop after Ctrl-C only if
         * supervisor_die() follows.
         */
        int terminal_signal;
};
struct supervisor_result supervisor_result(struct supervisor *supervisor);

/* End this process by a signal. Call after supervisor_free(). */
_Noreturn void supervisor_die(int signal_number);
