/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command lock. A lock is a key that expires, as the published clients of Azure IoT
 * Operations use it: the value is the holder, and the version of its SET is the fencing token.
 *
 * The first SET has NX, not NEX as that of the published clients: two runs with the same --client-id
 * or --name must not both hold the lock. A renewal has NEX. If the reply to the first SET is lost,
 * the lock that it took expires.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "ctl/command_run.h"
#include "ctl/supervisor.h"
#include "ctl/watcher.h"
#include "protocol/hlc.h"

/* Times since a renewal was sent, as parts of the lease. --help states them. */
#define RENEW_AFTER(lease)     ((lease) / 3)
#define TERMINATE_AFTER(lease) ((lease) / 3 * 2)
#define KILL_AFTER(lease)      ((lease) / 10 * 9)

/* Pause after an error of the store, as a part of the lease. */
#define PAUSE_AFTER_ERROR(lease) ((lease) / 30)

/* Timeout of the first renewal after a problem. The timeout of each further one is twice as long. */
#define RETRY_FIRST_MS         250
#define RENEWAL_TIMEOUT_MIN_MS 50

struct lock {
        const struct command_options *options;
        struct slice key, value;
        char name[192]; /* the lock, for messages */
        char problem_note[256];
        struct supervisor *supervisor;
        struct store_client *client;
        struct watcher watcher;

        bool is_deleted; /* while waiting: a notification reported that the key was deleted */
        bool is_held;
        char fence[256];  /* the version of the first SET */
        int64_t start_ns; /* of this command */
        int64_t sent_ns;  /* when the latest SET that took effect was sent */
        int64_t renew_ns; /* when to renew */
        int64_t retry_ms; /* timeout of the next renewal after a problem, which was printed; 0: none */
        bool is_lost;     /* the store does not have the lock of this client any more */
};

static int64_t lease_ns(const struct lock *lock) {
        return lock->options->lease_ms * NS_PER_MS;
}

static struct supervisor_lease lease_from(const struct lock *lock, int64_t sent_ns) {
        return (struct supervisor_lease){ .terminate_ns = sent_ns + TERMINATE_AFTER(lease_ns(lock)),
                                          .kill_ns = sent_ns + KILL_AFTER(lease_ns(lock)) };
}

/* Milliseconds until then, rounded up; 0 if the time has passed. */
static int64_t ms_until(int64_t at_ns) {
        int64_t remaining_ns = at_ns - system_clock_boot_ns();

        return remaining_ns > 0 ? (remaining_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* The SET that takes or renews the lock. */
static struct store_request make_set_request(const struct lock *lock, const char *condition) {
        struct store_request request = store_request_make("SET", lock->key);

        store_request_add(&request, lock->value);
        store_request_add_string(&request, condition);
        request.px_ms = lock->options->lease_ms;
        return request;
}

/* 1. Acquire */

static bool read_fence(struct lock *lock, const struct store_reply *reply) {
        struct slice version = store_reply_version(reply);
        struct hlc hlc;

        if (!version.data || version.length >= sizeof(lock->fence) || hlc_parse(version, &hlc) < 0)
                return false;
        snprintf(lock->fence, sizeof(lock->fence), "%.*s", (int)version.length, (const char *)version.data);
        return true;
}

static enum connection_result try_to_acquire(void *userdata) {
        CLEANUP(store_reply_deinit) struct store_reply reply = { 0 };
        struct lock *lock = userdata;
        struct store_request request = make_set_request(lock, "NX");
        int64_t sent_ns = system_clock_boot_ns();
        enum connection_result result;

        lock->is_deleted = false;
        result = watcher_ask(&lock->watcher, &request, &reply);
        if (result != CONNECTION_OK)
                return result;
        lock->is_held = store_reply_is_ok(&reply) && read_fence(lock, &reply);
        if (!lock->is_held && !store_reply_is_refusal(&reply))
                return watcher_end(&lock->watcher, store_reply_print_unexpected(&reply));
        lock->sent_ns = sent_ns;
        return CONNECTION_OK;
}

static void lock_on_notification(void *userdata, const struct message *message) {
        struct lock *lock = userdata;
        struct watched_change change;

        lock->is_deleted |= watched_change_read(message, &change) == 0 && change.is_deleted;
}

/*
 * Wait for the notification that the key was deleted. Notifications may be missed, so also try again
 * after each lease, and after each new registration.
 */
static void wait_and_acquire(struct lock *lock) {
        const struct command_options *options = lock->options;
        enum connection_result result;

        complain("waiting for %s", lock->name);
        if (options->wait_ms >= 0)
                supervisor_set_alarm(lock->supervisor, lock->start_ns + options->wait_ms * NS_PER_MS);
        result = watcher_register(&lock->watcher);
        while (!lock->is_held && result != CONNECTION_INTERRUPTED) {
                if (result != CONNECTION_OK)
                        result = watcher_recover(&lock->watcher, result);
                else if (lock->is_deleted)
                        result = try_to_acquire(lock);
                else
                        result = watcher_wait(&lock->watcher, &lock->is_deleted, options->lease_ms);
        }
}

/* Returns EXIT_DONE if the lock is held, or if a signal has arrived. */
static enum exit_code acquire_lock(struct lock *lock) {
        const struct command_options *options = lock->options;
        enum connection_result result = watcher_connect(&lock->watcher);

        if (result == CONNECTION_OK)
                result = try_to_acquire(lock);
        if (result == CONNECTION_FAILED || result == CONNECTION_TIMED_OUT)
                return store_client_print_problem(lock->client);
        if (result == CONNECTION_OK && !lock->is_held && options->wait_ms != 0)
                wait_and_acquire(lock);

        if (lock->is_held || supervisor_signal(lock->supervisor))
                return EXIT_DONE;
        if (lock->watcher.exit_code != EXIT_DONE)
                return lock->watcher.exit_code;
        if (options->wait_ms == 0)
                complain("%s has another holder", lock->name);
        else
                complain("%s was not acquired within %s", lock->name, duration_text(options->wait_ms).text);
        return EXIT_NOT_MET;
}

/* 2. Hold */

/* Print the cause once, until a renewal succeeds. */
static void note_renewal_problem(struct lock *lock) {
        if (!lock->retry_ms)
                complain("cannot renew %s: %s", lock->name, store_client_problem(lock->client));
        lock->retry_ms = lock->retry_ms ? lock->retry_ms * 2 : RETRY_FIRST_MS;
}

static void read_renewal_reply(struct lock *lock, struct store_reply *reply, int64_t sent_ns) {
        lock->renew_ns = system_clock_boot_ns() + PAUSE_AFTER_ERROR(lease_ns(lock));
        if (store_reply_read(reply) != EXIT_DONE)
                return;
        if (store_reply_is_ok(reply)) {
                if (lock->retry_ms)
                        complain("renewed %s", lock->name);
                lock->retry_ms = 0;
                lock->sent_ns = sent_ns;
                lock->renew_ns = sent_ns + RENEW_AFTER(lease_ns(lock));
                supervisor_extend(lock->supervisor, sent_ns, lease_from(lock, sent_ns));
        } else if (store_reply_is_refusal(reply)) {
                lock->is_lost = true;
                supervisor_kill(lock->supervisor);
        } else {
                store_reply_print_unexpected(reply);
        }
}

/*
 * At most half of the time that remains, so that there is time for another renewal if the request or
 * its reply is lost. After a restart of the broker the store may connect later than this client,
 * and requests sent before are lost. So the first timeouts after a problem are short.
 */
static int64_t renewal_timeout_ms(const struct lock *lock) {
        int64_t half_ms = ms_until(lock->sent_ns + TERMINATE_AFTER(lease_ns(lock))) / 2;
        int64_t limit_ms = lock->retry_ms ?: lock->options->timeout_ms;
        int64_t timeout_ms = half_ms < limit_ms ? half_ms : limit_ms;

        return timeout_ms > RENEWAL_TIMEOUT_MIN_MS ? timeout_ms : RENEWAL_TIMEOUT_MIN_MS;
}

static enum connection_result renew_lock(struct lock *lock) {
        CLEANUP(store_reply_deinit) struct store_reply reply = { 0 };
        struct store_request request = make_set_request(lock, "NEX");
        int64_t sent_ns = system_clock_boot_ns();
        enum connection_result result;

        request.timeout_ms = renewal_timeout_ms(lock);
        result = store_client_request(lock->client, &request, &reply);
        if (result == CONNECTION_OK)
                read_renewal_reply(lock, &reply, sent_ns);
        if (result != CONNECTION_TIMED_OUT)
                return result;

        /* The network may drop all packets of this connection, and accept a new one. */
        note_renewal_problem(lock);
        return store_client_fail(lock->client, "no reply to a renewal");
}

/* Renew the lock until the program has ended. */
static void hold_lock(struct lock *lock) {
        lock->renew_ns = lock->sent_ns + RENEW_AFTER(lease_ns(lock));
        while (!supervisor_result(lock->supervisor).is_lost) {
                enum connection_result result =
                        store_client_wait(lock->client, NULL, ms_until(lock->renew_ns));

                if (result == CONNECTION_FAILED) {
                        if (!lock->retry_ms)
                                note_renewal_problem(lock);
                        result = store_client_reopen(lock->client);
                }
                if (result != CONNECTION_INTERRUPTED)
                        result = renew_lock(lock);
                if (result != CONNECTION_INTERRUPTED)
                        continue;
                if (supervisor_result(lock->supervisor).has_ended)
                        return;
                supervisor_clear_interruption(lock->supervisor);
        }
        supervisor_wait(lock->supervisor);
}

/* 3. Release */

static enum connection_result delete_lock_key(struct lock *lock, int64_t timeout_ms,
                                              struct store_reply *reply) {
        struct store_request request = store_request_make("VDEL", lock->key);

        store_request_add(&request, lock->value);
        request.timeout_ms = timeout_ms;
        return store_client_request(lock->client, &request, reply);
}

/* Delete the key, unless its lease has ended: then another client may have the lock. */
static void release_lock(struct lock *lock) {
        CLEANUP(store_reply_deinit) struct store_reply reply = { 0 };
        int64_t timeout_ms = ms_until(lock->sent_ns + lease_ns(lock));
        enum connection_result result;

        supervisor_clear_interruption(lock->supervisor);
        if (timeout_ms == 0 || lock->is_lost)
                return;

        if (timeout_ms > lock->options->timeout_ms)
                timeout_ms = lock->options->timeout_ms;
        result = delete_lock_key(lock, timeout_ms, &reply);
        if (result == CONNECTION_FAILED && store_client_open(lock->client) == CONNECTION_OK)
                result = delete_lock_key(lock, timeout_ms, &reply);

        if (result == CONNECTION_OK && store_reply_read(&reply) == EXIT_DONE)
                lock->is_lost = reply.item.type == RESP3_NUMBER && reply.item.number < 1;
        else if (result == CONNECTION_INTERRUPTED)
                complain("%s was not released; it ends with its lease", lock->name);
        else
                complain("%s was not released; it ends with its lease: %s", lock->name,
                         store_client_problem(lock->client));
}

/* 4. The command */

static enum exit_code run_program(struct lock *lock) {
        struct supervisor_result result;
        int r = 0;

        /* A client with the same id would end the connection of this one. */
        unsetenv("STATESTORE_CLIENT_ID");
        if (setenv("STATESTORE_FENCE", lock->fence, true) < 0)
                r = -errno;
        if (r == 0)
                r = supervisor_start(lock->supervisor, lock->options->program,
                                     lease_from(lock, lock->sent_ns));
        if (r == 0)
                hold_lock(lock);
        release_lock(lock);
        if (r == -EINTR)
                return EXIT_DONE; /* run_lock() ends this process */
        if (r < 0) {
                complain("cannot start the command: %s", strerror(-r));
                return command_exit_code(lock->options->command, EXIT_USAGE);
        }

        result = supervisor_result(lock->supervisor);
        if (result.is_lost || lock->is_lost) {
                complain("lost %s%s", lock->name,
                         result.is_lost ? "; the command was ended" : " before the command ended");
                return EXIT_LEASE_LOST;
        }
        return WIFSIGNALED(result.status) ? EXIT_SIGNAL + (enum exit_code)WTERMSIG(result.status)
                                          : (enum exit_code)WEXITSTATUS(result.status);
}

static enum exit_code run_lock(struct lock *lock) {
        struct store_client_config config = { .options = lock->options,
                                              .notification = lock_on_notification,
                                              .userdata = lock };
        struct supervisor_result result;
        enum exit_code code;
        int r, signal_number;

        r = supervisor_new(&lock->supervisor);
        if (r == 0) {
                config.interrupt_fd = supervisor_interrupt_fd(lock->supervisor);
                r = store_client_new(&lock->client, &config);
        }
        if (r < 0) {
                supervisor_free(lock->supervisor);
                complain("%s", strerror(-r));
                return command_exit_code(lock->options->command, EXIT_USAGE);
        }

        lock->watcher.client = lock->client;
        code = command_exit_code(lock->options->command, acquire_lock(lock));
        if (lock->is_held)
                code = run_program(lock);

        result = supervisor_result(lock->supervisor);
        signal_number = result.has_ended ? result.terminal_signal : supervisor_signal(lock->supervisor);
        store_client_free(lock->client);
        supervisor_free(lock->supervisor);
        if (signal_number)
                supervisor_die(signal_number);
        return code;
}

enum exit_code command_lock(struct command_run *run) {
        struct lock lock = {
                .options = run->options,
                .key = run->key,
                .value = slice_from_string(run->options->name ?: run->options->client_id),
                .watcher = { .options = run->options,
                             .keys = run->keys,
                             .n_keys = 1,
                             .registered = try_to_acquire },
                .start_ns = system_clock_boot_ns(),
        };

        snprintf(lock.name, sizeof(lock.name), "the lock \"%s\"", LOG_TEXT(lock.key));
        snprintf(lock.problem_note, sizeof(lock.problem_note), "cannot acquire %s", lock.name);
        lock.watcher.problem_note = lock.problem_note;
        lock.watcher.userdata = &lock;
        return run_lock(&lock);
}
