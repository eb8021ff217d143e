/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/output.h"

#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND      127

/* The descriptors that this process opens are below this number. */
#define DESCRIPTORS_MAX 1024

static const int forwarded_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };

enum stage {
        STAGE_IDLE, /* no program has started */
        STAGE_RUNNING,
        STAGE_TERMINATING, /* the lease is lost; SIGTERM was sent */
        STAGE_KILLING,     /* the lease is lost; SIGKILL was sent */
        STAGE_ENDED,
};

struct supervisor {
        pthread_t thread;
        int signal_fd, timer_fd, interrupt_fd;
        bool is_inherited[DESCRIPTORS_MAX]; /* open before this process opened its own */
        sigset_t mask_before;               /* of the main thread */
        pthread_mutex_t mutex;              /* guards what follows */
        enum stage stage;
        pid_t pid;   /* of the program; 0: it was not started or has ended */
        pid_t group; /* the process group of the program */
        int status;
        bool has_terminal; /* the program gets the terminal of this process */
        bool is_lost;
        struct supervisor_lease lease;
        int signal;
        bool is_closing;
};

/* 1. The thread. Its functions are called with the mutex locked. */

/* at_ns: 0 stops the timer. A time in the past expires at once. */
static void set_timer(struct supervisor *supervisor, int64_t at_ns) {
        struct itimerspec at = { .it_value = { (time_t)(at_ns / NS_PER_S), (long)(at_ns % NS_PER_S) } };

        timerfd_settime(supervisor->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void raise_interruption(struct supervisor *supervisor) {
        eventfd_write(supervisor->interrupt_fd, 1);
}

/* Make a process group the foreground one. SIGTTOU is blocked. */
static void give_terminal(const struct supervisor *supervisor, pid_t group) {
        if (supervisor->has_terminal)
                tcsetpgrp(STDIN_FILENO, group);
}

/* The number of the signal that ended the program if a user typed it; 0: none. */
static int typed_signal(const struct supervisor *supervisor) {
        int signal_number = WIFSIGNALED(supervisor->status) ? WTERMSIG(supervisor->status) : 0;

        return supervisor->has_terminal && (signal_number == SIGINT || signal_number == SIGQUIT)
                       ? signal_number
                       : 0;
}

static void end_supervision(struct supervisor *supervisor) {
        supervisor->stage = STAGE_ENDED;
        set_timer(supervisor, 0);
        give_terminal(supervisor, getpgrp());
        if (typed_signal(supervisor)) /* the terminal has sent it to the group of the program only */
                kill(0, typed_signal(supervisor));
        raise_interruption(supervisor);
}

/* Stop with the program, as the terminal stops all processes of a job. Returns after SIGCONT. */
static void stop_with_program(struct supervisor *supervisor) {
        give_terminal(supervisor, getpgrp());
        kill(0, SIGSTOP);
        if (tcgetpgrp(STDIN_FILENO) == getpgrp())
                give_terminal(supervisor, supervisor->group);
        kill(-supervisor->group, SIGCONT);
}

static void kill_group(struct supervisor *supervisor) {
        supervisor->stage = STAGE_KILLING;
        supervisor->is_lost = true;
        kill(-supervisor->group, SIGKILL);
        if (!supervisor->pid)
                end_supervision(supervisor);
}

static void supervisor_on_timer(struct supervisor *supervisor) {
        switch (supervisor->stage) {
        case STAGE_IDLE:
                raise_interruption(supervisor);
                break;
        case STAGE_RUNNING:
                if (system_clock_boot_ns() >= supervisor->lease.kill_ns) {
                        kill_group(supervisor);
                } else {
                        supervisor->stage = STAGE_TERMINATING;
                        supervisor->is_lost = true;
                        kill(-supervisor->group, SIGTERM);
                        set_timer(supervisor, supervisor->lease.kill_ns);
                }
                break;
        case STAGE_TERMINATING:
                kill_group(supervisor);
                break;
        case STAGE_KILLING:
        case STAGE_ENDED:
        default:
                break;
        }
}

/* Also reaps descendants of the program: this process is their subreaper. */
static void reap_children(struct supervisor *supervisor) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
                if (pid != supervisor->pid)
                        continue;
                if (WIFSTOPPED(status)) {
                        if (supervisor->has_terminal)
                                stop_with_program(supervisor);
                        continue;
                }
                supervisor->pid = 0;
                supervisor->status = status;
        }
        if (supervisor->pid || supervisor->stage == STAGE_ENDED)
                return;
        if (supervisor->stage != STAGE_TERMINATING || kill(-supervisor->group, 0) < 0)
                end_supervision(supervisor);
}

static void supervisor_on_signal(struct supervisor *supervisor, const struct signalfd_siginfo *info) {
        if (info->ssi_signo == SIGCHLD) {
                if (supervisor->stage != STAGE_IDLE)
                        reap_children(supervisor);
        } else if (info->ssi_pid == (uint32_t)getpid()) {
                /* end_supervision() has sent it to the group: it must not interrupt what follows */
        } else if (supervisor->pid) {
                kill(supervisor->pid, (int)info->ssi_signo);
        } else {
                if (supervisor->signal == 0)
                        supervisor->signal = (int)info->ssi_signo;
                raise_interruption(supervisor);
        }
}

static void *run_supervisor(void *userdata) {
        struct supervisor *supervisor = userdata;
        struct pollfd fds[] = { { .fd = supervisor->signal_fd, .events = POLLIN },
                                { .fd = supervisor->timer_fd, .events = POLLIN } };
        bool is_closing = false;

        while (!is_closing) {
                struct signalfd_siginfo info;
                uint64_t n_expirations;

                poll(fds, ARRAY_LENGTH(fds), -1);
                pthread_mutex_lock(&supervisor->mutex);
                /* The timer first: after SIGSTOP and SIGCONT, the program must end at once. */
                if (read(supervisor->timer_fd, &n_expirations, sizeof(n_expirations)) > 0)
                        supervisor_on_timer(supervisor);
                if (read(supervisor->signal_fd, &info, sizeof(info)) == sizeof(info))
                        supervisor_on_signal(supervisor, &info);
                is_closing = supervisor->is_closing;
                pthread_mutex_unlock(&supervisor->mutex);
        }
        return NULL;
}

/* 2. The program */

/* Runs in the new process, between fork and exec. */
static _Noreturn void exec_program(const struct supervisor *supervisor, char *const *arguments,
                                   pid_t parent) {
        int error;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(EXIT_NOT_EXECUTABLE);
        setpgid(0, 0);
        give_terminal(supervisor, getpid());
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &supervisor->mask_before, NULL);
        /* libmosquitto's sockets are not close-on-exec: the program would keep the connection open. */
        for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
                if (!supervisor->is_inherited[fd])
                        close(fd);

        execvp(arguments[0], arguments);
        error = errno;
        complain("cannot execute \"%s\": %s", LOG_STRING(arguments[0]), strerror(error));
        _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

int supervisor_start(struct supervisor *supervisor, char *const *arguments, struct supervisor_lease lease) {
        pid_t parent = getpid(), pid = -1;
        int r = -EINTR;

        pthread_mutex_lock(&supervisor->mutex);
        if (supervisor->signal == 0) {
                pid = fork();
                r = pid < 0 ? -errno : 0;
        }
        if (pid == 0)
                exec_program(supervisor, arguments, parent);
        if (pid > 0) {
                setpgid(pid, pid); /* the new process does the same; either may be first */
                supervisor->pid = supervisor->group = pid;
                supervisor->stage = STAGE_RUNNING;
                supervisor->lease = lease;
                set_timer(supervisor, lease.terminate_ns);
        }
        pthread_mutex_unlock(&supervisor->mutex);
        return r;
}

void supervisor_extend(struct supervisor *supervisor, int64_t renewed_ns, struct supervisor_lease lease) {
        pthread_mutex_lock(&supervisor->mutex);
        if (supervisor->stage == STAGE_RUNNING && renewed_ns < supervisor->lease.terminate_ns) {
                supervisor->lease = lease;
                set_timer(supervisor, lease.terminate_ns);
        }
        pthread_mutex_unlock(&supervisor->mutex);
}

void supervisor_kill(struct supervisor *supervisor) {
        pthread_mutex_lock(&supervisor->mutex);
        if (supervisor->stage == STAGE_RUNNING || supervisor->stage == STAGE_TERMINATING)
                kill_group(supervisor);
        pthread_mutex_unlock(&supervisor->mutex);
}

void supervisor_wait(struct supervisor *supervisor) {
        struct pollfd fd = { .fd = supervisor->interrupt_fd, .events = POLLIN };

        while (!supervisor_result(supervisor).has_ended) {
                poll(&fd, 1, -1);
                supervisor_clear_interruption(supervisor);
        }
}

struct supervisor_result supervisor_result(struct supervisor *supervisor) {
        struct supervisor_result result;

        pthread_mutex_lock(&supervisor->mutex);
        result = (struct supervisor_result){ .has_ended = supervisor->stage == STAGE_ENDED,
                                             .is_lost = supervisor->is_lost,
                                             .status = supervisor->status };
        if (result.has_ended)
                result.terminal_signal = typed_signal(supervisor);
        pthread_mutex_unlock(&supervisor->mutex);
        return result;
}

/* 3. Interruptions */

int supervisor_interrupt_fd(const struct supervisor *supervisor) {
        return supervisor->interrupt_fd;
}

void supervisor_clear_interruption(struct supervisor *supervisor) {
        eventfd_t n;

        eventfd_read(supervisor->interrupt_fd, &n);
}

int supervisor_signal(struct supervisor *supervisor) {
        int signal_number;

        pthread_mutex_lock(&supervisor->mutex);
        signal_number = supervisor->signal;
        pthread_mutex_unlock(&supervisor->mutex);
        return signal_number;
}

void supervisor_set_alarm(struct supervisor *supervisor, int64_t at_ns) {
        pthread_mutex_lock(&supervisor->mutex);
        if (supervisor->stage == STAGE_IDLE)
                set_timer(supervisor, at_ns);
        pthread_mutex_unlock(&supervisor->mutex);
}

_Noreturn void supervisor_die(int signal_number) {
        sigset_t set;

        signal(signal_number, SIG_DFL);
        sigemptyset(&set);
        sigaddset(&set, signal_number);
        raise(signal_number);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        abort(); /* not reached: the default action of each signal ends the process */
}

/* 4. Creation */

static void block_signals(struct supervisor *supervisor, sigset_t *ret_signals) {
        sigset_t blocked;

        sigemptyset(ret_signals);
        sigaddset(ret_signals, SIGCHLD);
        for (size_t i = 0; i < ARRAY_LENGTH(forwarded_signals); i++)
                sigaddset(ret_signals, forwarded_signals[i]);
        signal(SIGCHLD, SIG_DFL); /* it may have been ignored: then waitpid() would fail */
        blocked = *ret_signals;
        sigaddset(&blocked, SIGTTOU);
        sigprocmask(SIG_BLOCK, &blocked, &supervisor->mask_before);
}

static int open_descriptors(struct supervisor *supervisor, const sigset_t *signals) {
        supervisor->signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
        supervisor->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        supervisor->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return supervisor->signal_fd < 0 || supervisor->timer_fd < 0 || supervisor->interrupt_fd < 0 ? -errno
                                                                                                     : 0;
}

static void close_descriptors(struct supervisor *supervisor) {
        const int fds[] = { supervisor->signal_fd, supervisor->timer_fd, supervisor->interrupt_fd };

        for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

int supervisor_new(struct supervisor **ret_supervisor) {
        struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
        sigset_t signals;
        int r;

        if (!supervisor)
                return -ENOMEM;

        for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
                supervisor->is_inherited[fd] = fcntl(fd, F_GETFD) >= 0;
        supervisor->has_terminal = tcgetpgrp(STDIN_FILENO) == getpgrp();
        pthread_mutex_init(&supervisor->mutex, NULL);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        block_signals(supervisor, &signals);
        r = open_descriptors(supervisor, &signals);
        if (r == 0)
                r = -pthread_create(&supervisor->thread, NULL, run_supervisor, supervisor);
        if (r < 0) {
                close_descriptors(supervisor);
                sigprocmask(SIG_SETMASK, &supervisor->mask_before, NULL);
                free(supervisor);
                return r;
        }

        *ret_supervisor = supervisor;
        return 0;
}

struct supervisor *supervisor_free(struct supervisor *supervisor) {
        if (!supervisor)
                return NULL;

        pthread_mutex_lock(&supervisor->mutex);
        supervisor->is_closing = true;
        set_timer(supervisor, 1); /* wake the thread */
        pthread_mutex_unlock(&supervisor->mutex);
        pthread_join(supervisor->thread, NULL);

        close_descriptors(supervisor);
        pthread_mutex_destroy(&supervisor->mutex);
        free(supervisor);
        return NULL;
}
