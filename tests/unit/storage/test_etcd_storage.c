/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The storage in a real etcd: what is committed is loaded, whatever replies are lost, and only the
 * leader commits.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/system_clock.h"
#include "base/time_units.h"
#include "protocol/wire.h"
#include "storage/etcd/etcd.h"
#include "storage/etcd/keys.h"
#include "storage/stored_form.h"
#include "support/etcd_process.h"
#include "support/tcp_proxy.h"
#include "unit/etcd/wrapped_call.h"
#include "unit/storage/content.h"
#include "unit/support/capture.h"
#include "unit/support/table.h"

#define S          SLICE_LITERAL
#define PREFIX     "/statestore/test/"
#define ROWS_MAX   600
#define VERSION(n) ((struct version){ 1000, n })

static struct etcd_process process;
static struct tcp_proxy proxy;
static const char *endpoint;

/* A process of a member. */
struct member {
        struct storage *storage;
        struct state_header header; /* of the last commit */
        struct row rows[ROWS_MAX];
        size_t n_rows;
        uint64_t acknowledged, forgotten_up_to;
        bool forgets_executions;
        struct content expected, loaded;
        uint64_t n_loaded; /* change sets */
        struct storage_etcd_reading reading;
};
static struct member member, other;

/* 1. Injected errors */

/* The next transactions fail with these errors. */
static struct injected {
        int error;
        bool is_sent; /* to etcd, which executes it */
} injected[4];
static size_t n_injected;

static void inject(struct injected one) {
        injected[n_injected++] = one;
}

static bool ranges_are_too_large; /* until the next transaction; after 10 ms */
static size_t n_keys_in_time;     /* a range with more of them times out; 0: none does */

int __wrap_etcd_call(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request,
                     const ProtobufCMessage **ret_response) {
        int64_t asked_ns = system_clock_mono_ns();
        struct injected first = injected[0];

        ranges_are_too_large = ranges_are_too_large && method != ETCD_TXN;
        if (ranges_are_too_large) {
                while (system_clock_mono_ns() - asked_ns < 10 * NS_PER_MS)
                        continue;
                return -EMSGSIZE;
        }
        if (method == ETCD_RANGE && n_keys_in_time > 0) {
                int r = __real_etcd_call(client, method, request, ret_response);

                return r == 0 && ((const Etcd__RangeResponse *)*ret_response)->n_kvs > n_keys_in_time
                               ? -ETIMEDOUT
                               : r;
        }
        if (method != ETCD_TXN || n_injected == 0)
                return __real_etcd_call(client, method, request, ret_response);
        memmove(&injected[0], &injected[1], --n_injected * sizeof(injected[0]));
        if (first.is_sent)
                cr_assert_eq(__real_etcd_call(client, method, request, ret_response), 0);
        return first.error;
}

/* 2. Members */

static void start_etcd(const char *option) {
        etcd_process_start(&process, option);
        tcp_proxy_start(&proxy, process.url);
        endpoint = proxy.url;
}

static void setup(void) {
        start_etcd(NULL);
}

static void stop_member(struct member *one) {
        storage_close(one->storage);
        content_deinit(&one->expected);
        content_deinit(&one->loaded);
        *one = (struct member){ 0 };
}

static void teardown(void) {
        stop_member(&member);
        stop_member(&other);
        tcp_proxy_stop(&proxy);
        etcd_process_stop(&process);
}

TestSuite(etcd_storage, .init = setup, .fini = teardown);

static struct storage_etcd_config config_of(const char *name) {
        return (struct storage_etcd_config){
                .etcd = { .endpoints = &endpoint,
                          .n_endpoints = 1,
                          .timeout_ms = 3000, /* rarely reached on a busy machine */
                          .max_reply_bytes = 8 << 20 },
                .prefix = PREFIX,
                .max_txn_ops = 128,
                .max_request_bytes = 1536 << 10,
                .holder = { .member = (uint64_t)name[0], .process = 7, .lease_ns = 60 * NS_PER_S },
        };
}

static void open_member(struct member *one, const char *name) {
        struct storage_etcd_config config = config_of(name);

        snprintf(config.holder.name, sizeof(config.holder.name), "%s", name);
        cr_assert_eq(storage_etcd_open(&one->storage, &config), 0);
}

static void apply_to_content(struct content *content, const struct change_set *change_set) {
        if (change_set->forgets_executions)
                content_remove_executions(content);
        content_remove_replies(content, 0, change_set->forgotten_up_to);
        content_remove_notifications(content, change_set->acknowledged);
        for (size_t i = 0; i < change_set->n_rows; i++) {
                const struct row *row = &change_set->rows[i];
                const struct entry_row *entry = &row->entry;
                const struct registration_row *registration = &row->registration;
                struct setting setting = { .key = entry->key, .value = entry->value };

                switch (row->type) {
                case ROW_ENTRY:
                        if (row->is_removed) {
                                content_remove_entry(content, entry->key);
                                break;
                        }
                        setting.deadline_ns = entry->expires_at_ms;
                        if (entry->has_fence)
                                setting.fence = entry->fence;
                        content_put_entry(content, &setting, entry->version);
                        break;
                case ROW_REGISTRATION:
                        content_put_registration(content, registration->client, registration->key,
                                                 row->is_removed ? NULL : &registration->user,
                                                 registration->connection);
                        break;
                case ROW_REPLY:
                        content_put_reply(content, row->reply.number, &row->reply.digest, row->reply.result,
                                          row->reply.forget_at_ms);
                        break;
                case ROW_EXECUTION:
                        content_put_execution(content, &row->execution);
                        break;
                case ROW_NOTIFICATION:
                        content_put_notification(content, &row->notification);
                        break;
                case N_ROW_TYPES:
                        break;
                }
        }
}

static int take_header(void *userdata, const struct state_header *header) {
        struct member *one = userdata;

        one->header = *header;
        one->n_loaded++;
        return 0;
}

static int take_row(void *userdata, const struct row *row) {
        struct member *one = userdata;

        one->n_loaded++;
        apply_to_content(&one->loaded, &(struct change_set){ .rows = row, .n_rows = 1 });
        return 0;
}

static int load(struct member *one) {
        struct storage_sink sink = { .header = take_header, .row = take_row, .userdata = one };

        content_reset(&one->loaded);
        one->n_loaded = 0;
        return storage_load(one->storage, &sink);
}

/* Read the header, win and load. Returns the error of the first step that fails. */
static int lead(struct member *one) {
        int r;

        r = storage_etcd_observe(one->storage, &one->reading);
        if (r == 0)
                r = storage_etcd_win(one->storage, &one->reading, 0);
        if (r == 0)
                r = load(one);
        return r == 0 ? storage_lead(one->storage, &one->header) : r;
}

static void open_and_lead(struct member *one, const char *name) {
        open_member(one, name);
        cr_assert_eq(lead(one), 0);
}

/* Check that another member loads what `one` has committed. */
static void check(struct member *one) {
        stop_member(&other);
        open_and_lead(&other, "other");
        for (size_t i = 0; i < one->expected.n_lines && i < other.loaded.n_lines; i++) {
                cr_expect_str_eq(other.loaded.lines[i].name, one->expected.lines[i].name);
                cr_expect_str_eq(other.loaded.lines[i].text, one->expected.lines[i].text);
        }
        cr_expect_eq(other.loaded.n_lines, one->expected.n_lines);
        cr_expect_eq(other.header.n_commits, one->header.n_commits);
}

/* 3. Changes */

static struct row *add_row(struct member *one, enum row_type type) {
        cr_assert_lt(one->n_rows, ROWS_MAX);
        one->rows[one->n_rows] = (struct row){ .type = type };
        return &one->rows[one->n_rows++];
}

static void set(struct member *one, struct slice key, struct slice value) {
        add_row(one, ROW_ENTRY)->entry =
                (struct entry_row){ key, value, VERSION(1), EXPIRES_NEVER, false, { 0 } };
}

static void reply(struct member *one, uint64_t number) {
        add_row(one, ROW_REPLY)->reply = (struct reply_row){ .number = number,
                                                             .result = { .outcome = OUTCOME_DELETED },
                                                             .forget_at_ms = 5000 };
}

static void execute(struct member *one, uint64_t number) {
        add_row(one, ROW_EXECUTION)->execution =
                (struct executed_request){ .number = number, .result = { .outcome = OUTCOME_DELETED } };
}

static void notify(struct member *one, struct slice key) {
        add_row(one, ROW_NOTIFICATION)->notification =
                (struct pending_notification){ .sequence = ++one->header.notification_sequence,
                                               .version = VERSION(1),
                                               .key = key,
                                               .recipients = S("r") };
}

static int commit(struct member *one) {
        struct change_set change_set;
        int r;

        one->header.n_commits++;
        one->header.clock = VERSION(9);
        change_set = (struct change_set){ .header = one->header,
                                          .rows = one->rows,
                                          .n_rows = one->n_rows,
                                          .forgets_executions = one->forgets_executions,
                                          .acknowledged = one->acknowledged,
                                          .forgotten_up_to = one->forgotten_up_to };
        r = storage_commit(one->storage, &change_set);
        if (r == 0)
                apply_to_content(&one->expected, &change_set);
        else
                one->header.n_commits--;
        one->n_rows = 0;
        return r;
}

#define COMMIT(member) cr_assert_eq(commit(member), 0)

/* 4. Commit and load */

Test(etcd_storage, new_storage_is_empty_with_stable_secrets) {
        struct state_header first;

        open_and_lead(&member, "a");
        cr_expect_eq(member.loaded.n_lines, 0);
        cr_expect_eq(member.n_loaded, 1);
        first = member.header;
        check(&member);
        cr_expect_arr_eq(&other.header.row_hash_key, &first.row_hash_key, sizeof(first.row_hash_key));
        cr_expect_str_eq(other.header.instance_id, first.instance_id);
        cr_expect_eq(other.reading.election.header.term, 1);
        cr_expect_eq(other.reading.election.header.member, 'a');
}

Test(etcd_storage, loads_all_kinds_of_changes) {
        struct row *row;

        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        set(&member, S("a\0\xFF"), S(""));
        row = add_row(&member, ROW_ENTRY);
        row->entry = (struct entry_row){ S("all"), S("\0"), VERSION(2), 1234, true, { 5, 6, S("node") } };
        row = add_row(&member, ROW_REGISTRATION);
        row->registration = (struct registration_row){ S("client"), S("key"), 3, S("user") };
        row = add_row(&member, ROW_REGISTRATION);
        row->registration = (struct registration_row){ S("clientk"), S("ey"), 0, S("") };
        reply(&member, 1);
        reply(&member, 3);
        execute(&member, 256);
        execute(&member, 257);
        execute(&member, 511);
        notify(&member, S("key"));
        notify(&member, S("other"));
        COMMIT(&member);
        cr_expect_eq(member.expected.n_lines, 12);
        check(&member);
}

Test(etcd_storage, replaces_and_removes) {
        struct row *row;

        open_and_lead(&member, "a");
        for (uint64_t i = 1; i <= 3; i++) {
                set(&member, S("key"), S("value"));
                set(&member, i == 1 ? S("1") : i == 2 ? S("2") : S("3"), S("value"));
                reply(&member, 2 * i - 1);
                reply(&member, 2 * i);
                execute(&member, 256 * i + 1);
                execute(&member, 40 * i);
                notify(&member, S("a"));
                notify(&member, S("b"));
                COMMIT(&member);
        }
        row = add_row(&member, ROW_REGISTRATION);
        row->registration = (struct registration_row){ S("client"), S("key"), 3, S("user") };
        COMMIT(&member);

        row = add_row(&member, ROW_ENTRY);
        row->entry.key = S("2");
        row->is_removed = true;
        row = add_row(&member, ROW_REGISTRATION);
        row->registration = (struct registration_row){ .client = S("client"), .key = S("key") };
        row->is_removed = true;
        member.acknowledged = 3; /* in the middle of a row */
        member.forgotten_up_to = 5;
        COMMIT(&member);
        check(&member);

        member.acknowledged = 6;
        member.forgotten_up_to = 6;
        COMMIT(&other); /* proves that other leads now */
        cr_expect_eq(commit(&member), -ESTALE);
}

Test(etcd_storage, forgets_executions) {
        open_and_lead(&member, "a");
        execute(&member, 1);
        execute(&member, 40);
        execute(&member, 41);
        COMMIT(&member);
        member.forgets_executions = true;
        execute(&member, 42);
        COMMIT(&member);
        cr_expect_eq(member.expected.n_lines, 1);
        member.forgets_executions = false;
        execute(&member, 300); /* in the row of 42 */
        COMMIT(&member);
        check(&member);
}

Test(etcd_storage, continues_after_a_takeover_with_what_was_loaded) {
        open_and_lead(&member, "a");
        execute(&member, 257);
        reply(&member, 1);
        notify(&member, S("a"));
        COMMIT(&member);
        check(&member);

        content_copy(&other.expected, &other.loaded);
        execute(&other, 514); /* in the same row */
        reply(&other, 2);
        notify(&other, S("b"));
        other.acknowledged = 1;
        COMMIT(&other);
        stop_member(&member);
        open_and_lead(&member, "a");
        cr_expect(content_equal(&member.loaded, &other.expected));
        cr_expect_eq(member.reading.election.header.term, 2);
}

static void commit_large_values(size_t n) {
        static char keys[2000][32];
        static uint8_t value[20000];

        for (size_t i = 0; i < n; i++) {
                snprintf(keys[i], sizeof(keys[i]), "key %zu", i);
                set(&member, slice_from_string(keys[i]), (struct slice){ value, sizeof(value) });
                if (i % 50 == 49)
                        COMMIT(&member);
        }
}

Test(etcd_storage, loads_more_than_a_reply_may_have) {
        open_and_lead(&member, "a");
        commit_large_values(2000);
        check(&member);
}

Test(etcd_storage, loads_smaller_ranges_if_one_takes_longer_than_the_time_out) {
        open_and_lead(&member, "a");
        commit_large_values(200);
        n_keys_in_time = 8;
        check(&member);
}

/* Compact a later revision than that of the header. */
static void compact(void) {
        char command[64];

        etcd_process_control(&process, "put unrelated value");
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        snprintf(command, sizeof(command), "compaction %lu",
                 (unsigned long)member.reading.election.revision);
        etcd_process_control(&process, command);
}

Test(etcd_storage, loads_at_a_later_revision_if_the_present_one_is_compacted) {
        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        COMMIT(&member);
        compact();
        cr_assert_eq(load(&member), 0);
        cr_expect(content_equal(&member.loaded, &member.expected));
        COMMIT(&member);
}

static void win_with_the_shortest_lease(void) {
        struct storage_etcd_config config = config_of("a");

        config.holder.lease_ns = ELECTION_LEASE_MIN_NS;
        cr_assert_eq(storage_etcd_open(&member.storage, &config), 0);
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        cr_assert_eq(storage_etcd_win(member.storage, &member.reading, 0), 0);
}

Test(etcd_storage, loading_renews_the_lease) {
        int64_t sent_ns;

        win_with_the_shortest_lease();
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        for (sent_ns = member.reading.election.header.sent_ns;
             member.reading.election.header.sent_ns == sent_ns;) {
                cr_assert_eq(load(&member), 0);
                cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        }
}

/* Without a renewal there would be no smaller range at last. */
Test(etcd_storage, loading_renews_the_lease_while_ranges_are_too_large) {
        win_with_the_shortest_lease();
        ranges_are_too_large = true;
        cr_expect_eq(load(&member), 0);
        cr_expect(!ranges_are_too_large);
}

static int64_t stored_reading_ms(struct member *one) {
        cr_assert_eq(storage_etcd_observe(one->storage, &one->reading), 0);
        return one->reading.header.state.reading_ms;
}

/* A member that dies before its first commit has not stopped the clock of deadlines. */
Test(etcd_storage, clock_of_deadlines_advances_without_a_commit) {
        struct storage_etcd_config config = config_of("a");
        int64_t shift_ms = system_clock_wall_ms() - 5000; /* the clock is at 5000 */
        const struct election_header *stored = &member.reading.election.header;
        int64_t won_ms, renewed_ms;
        uint64_t won_revision;

        config.holder.lease_ns = ELECTION_LEASE_MIN_NS;
        cr_assert_eq(storage_etcd_open(&member.storage, &config), 0);
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        cr_assert_eq(storage_etcd_win(member.storage, &member.reading, shift_ms), 0);
        won_ms = stored_reading_ms(&member);
        cr_expect_geq(won_ms, 5000 - 1);
        cr_expect_leq(won_ms, system_clock_wall_ms() - shift_ms);
        won_revision = stored->mod_revision;

        do {
                cr_assert_eq(load(&member), 0); /* renews after a third of the lease */
                renewed_ms = stored_reading_ms(&member);
        } while (stored->mod_revision == won_revision);
        cr_expect_gt(renewed_ms, won_ms);
        while (system_clock_boot_ns() - stored->sent_ns < NS_PER_MS)
                ;
        cr_assert_eq(storage_etcd_give_up(member.storage), 0);
        cr_expect_gt(stored_reading_ms(&member), renewed_ms);
}

static atomic_uint n_alive;

static void count_alive(void) {
        atomic_fetch_add(&n_alive, 1);
}

static void *lead_in_thread(void *userdata) {
        int *r = userdata;

        *r = storage_etcd_win(member.storage, &member.reading, 0);
        if (*r == 0)
                *r = load(&member);
        return NULL;
}

/* A member that leads answers for its progress itself: storage_is_waiting(). */
Test(etcd_storage, watchdog_is_fed_while_a_member_wins_and_loads) {
        struct storage_etcd_config config = config_of("a");
        pthread_t thread;
        unsigned int n;
        int r = 1;

        config.alive = count_alive;
        cr_assert_eq(storage_etcd_open(&member.storage, &config), 0);
        cr_assert_eq(lead(&member), 0);
        cr_expect_gt(atomic_load(&n_alive), 0);
        n = atomic_load(&n_alive);
        inject((struct injected){ -ETIMEDOUT, .is_sent = false });
        COMMIT(&member);
        cr_expect_eq(atomic_load(&n_alive), n);

        stop_member(&member);
        cr_assert_eq(storage_etcd_open(&member.storage, &config), 0);
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        etcd_process_kill(&process);
        cr_assert_eq(pthread_create(&thread, NULL, lead_in_thread, &r), 0);
        while (atomic_load(&n_alive) < n + 2)
                sched_yield();
        etcd_process_continue(&process);
        pthread_join(thread, NULL);
        cr_expect_eq(r, 0);
}

/* The pause feeds the watchdog, and so does the second attempt. */
Test(etcd_storage, compacted_revision_is_logged_and_tried_again_after_a_pause) {
        struct storage_etcd_config config = config_of("a");
        unsigned int n_before, n_without;
        struct capture capture;
        char *text;

        config.alive = count_alive;
        cr_assert_eq(storage_etcd_open(&member.storage, &config), 0);
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        cr_assert_eq(storage_etcd_win(member.storage, &member.reading, 0), 0);
        n_before = atomic_load(&n_alive);
        cr_assert_eq(load(&member), 0);
        n_without = atomic_load(&n_alive) - n_before;

        compact();
        n_before = atomic_load(&n_alive);
        capture_start(&capture, STDERR_FILENO);
        cr_assert_eq(load(&member), 0);
        text = capture_end(&capture);
        cr_expect_eq(atomic_load(&n_alive) - n_before, n_without + 2);
        cr_expect_eq(capture_count(text, "cannot load at etcd"), 1);
        cr_expect_not_null(strstr(text, "compacted"));
        free(text);
}

static void open_reader(struct member *one) {
        struct storage_etcd_config config = config_of("reader");

        config.read_only = true;
        config.holder.lease_ns = ELECTION_LEASE_MIN_NS;
        cr_assert_eq(storage_etcd_open(&one->storage, &config), 0);
        cr_assert_eq(storage_etcd_observe(one->storage, &one->reading), 0);
}

/* The reader loads what was stored when it read the header, and the leader goes on. */
Test(etcd_storage, reader_writes_nothing) {
        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        COMMIT(&member);
        open_reader(&other);
        cr_assert_eq(load(&other), 0);
        cr_expect(content_equal(&other.loaded, &member.expected));

        set(&member, S("key"), S("later"));
        COMMIT(&member);
        cr_assert_eq(load(&other), 0);
        cr_expect_not(content_equal(&other.loaded, &member.expected));
        cr_assert_eq(storage_etcd_observe(other.storage, &other.reading), 0);
        cr_assert_eq(load(&other), 0);
        cr_expect(content_equal(&other.loaded, &member.expected));
        COMMIT(&member);
}

/* Others write to the same etcd, so a revision that is not compacted may be later than the last commit. */
Test(etcd_storage, reader_reads_after_a_compaction) {
        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        COMMIT(&member);
        compact();
        open_reader(&other);
        cr_assert_eq(load(&other), 0);
        cr_expect(content_equal(&other.loaded, &member.expected));
}

Test(etcd_storage, reader_of_a_compacted_revision_fails) {
        struct capture capture;
        char *text;

        open_and_lead(&member, "a");
        open_reader(&other);
        COMMIT(&member);
        compact();
        capture_start(&capture, STDERR_FILENO);
        cr_expect_eq(load(&other), -EIO);
        text = capture_end(&capture);
        cr_expect_not_null(strstr(text, "compacted"));
        free(text);
        COMMIT(&member);
}

Test(etcd_storage, restored_cluster_gets_a_new_instance_id) {
        struct storage_etcd_reading reading;

        open_and_lead(&member, "a");
        open_member(&other, "other");
        cr_assert_eq(storage_etcd_observe(other.storage, &reading), 0);
        reading.election.cluster++;
        cr_assert_eq(storage_etcd_win(other.storage, &reading, 0), 0);
        cr_assert_eq(storage_etcd_observe(other.storage, &reading), 0);
        cr_expect_str_neq(reading.header.state.instance_id, member.header.instance_id);
        cr_expect_arr_eq(&reading.header.state.table_key, &member.header.table_key,
                         sizeof(member.header.table_key));
}

/* etcd has the same cluster id, and lower revisions. */
Test(etcd_storage, restored_directory_gets_a_new_instance_id) {
        char instance_id[sizeof(member.header.instance_id)];

        open_and_lead(&member, "a");
        COMMIT(&member);
        etcd_process_save(&process);
        COMMIT(&member);
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        strcpy(instance_id, member.header.instance_id);
        etcd_process_restore(&process);
        cr_expect_eq(commit(&member), -ESTALE);
        cr_assert_eq(lead(&member), 0);
        cr_expect_str_neq(member.header.instance_id, instance_id);
        check(&member);
        cr_expect_str_eq(other.header.instance_id, member.header.instance_id);
}

Test(etcd_storage, prefix_may_be_a_table_of_another_store) {
        struct storage_etcd_config config = config_of("b");

        open_and_lead(&member, "a");
        config.prefix = PREFIX "entry/";
        cr_assert_eq(storage_etcd_open(&other.storage, &config), 0);
        cr_assert_eq(lead(&other), 0);
        for (int i = 0; i < 2; i++) {
                struct member *one = i == 0 ? &member : &other;

                set(one, S("key"), S("value"));
                COMMIT(one);
                cr_assert_eq(load(one), 0);
                cr_expect(content_equal(&one->loaded, &one->expected));
        }
        COMMIT(&member); /* loads at this revision */
        cr_assert_eq(load(&member), 0);
        cr_expect(content_equal(&member.loaded, &member.expected));
}

/* 5. Leading */

Test(etcd_storage, one_of_two_standbys_wins) {
        open_member(&member, "a");
        open_member(&other, "other");
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        cr_assert_eq(storage_etcd_observe(other.storage, &other.reading), 0);
        cr_expect_eq(member.reading.election.header.mod_revision, 0);
        cr_expect_eq(storage_etcd_win(member.storage, &member.reading, 0), 0);
        cr_expect_eq(storage_etcd_win(other.storage, &other.reading, 0), STORAGE_ETCD_LOST);
        cr_expect_eq(other.reading.election.header.member, 'a');
        cr_expect_eq(other.reading.election.header.term, 1);
        cr_expect_eq(storage_etcd_win(other.storage, &other.reading, 0), 0);
}

Test(etcd_storage, former_leader_is_stale) {
        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        COMMIT(&member);
        check(&member);
        set(&member, S("key"), S("late"));
        cr_expect_eq(commit(&member), -ESTALE);
        cr_expect_eq(storage_etcd_give_up(member.storage), -ESTALE);
        check(&member);
}

Test(etcd_storage, giving_up_is_seen) {
        open_and_lead(&member, "a");
        cr_assert_eq(storage_etcd_give_up(member.storage), 0);
        open_member(&other, "other");
        cr_assert_eq(storage_etcd_observe(other.storage, &other.reading), 0);
        cr_expect(other.reading.election.header.has_given_up);
}

/* 6. Failures */

Test(etcd_storage, lost_replies_are_resolved) {
        open_and_lead(&member, "a");
        for (int i = 1; i <= 3; i++) {
                set(&member, S("key"), i == 3 ? S("3") : S("value"));
                execute(&member, (uint64_t)(256 * i + 1));
                tcp_proxy_lose(&proxy, i);
                COMMIT(&member);
                cr_expect(!storage_is_waiting(member.storage));
        }
        COMMIT(&member);
        check(&member);
}

Test(etcd_storage, lost_reply_of_a_win_is_resolved) {
        open_and_lead(&other, "other");
        open_member(&member, "a");
        cr_assert_eq(storage_etcd_observe(member.storage, &member.reading), 0);
        tcp_proxy_lose(&proxy, 2);
        cr_expect_eq(storage_etcd_win(member.storage, &member.reading, 0), 0);
        COMMIT(&member);
}

static void *commit_in_thread(void *userdata) {
        int *r = userdata;

        *r = commit(&member);
        return NULL;
}

Test(etcd_storage, commit_waits_until_etcd_is_back) {
        pthread_t thread;
        int r = 1;

        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        COMMIT(&member);
        etcd_process_kill(&process);
        set(&member, S("key"), S("later"));
        cr_assert_eq(pthread_create(&thread, NULL, commit_in_thread, &r), 0);
        while (!storage_is_waiting(member.storage))
                sched_yield();
        etcd_process_continue(&process);
        pthread_join(thread, NULL);
        cr_expect_eq(r, 0);
        cr_expect(!storage_is_waiting(member.storage));
        check(&member);
}

/* Not from the reply: another member may have counted since etcd has executed the transaction. */
Test(etcd_storage, lease_counts_from_the_sending) {
        struct storage_etcd_config config = config_of("a");
        int64_t sent_before_ns, now_ns;
        pthread_t thread;
        int r = 1;

        open_and_lead(&member, "a");
        etcd_process_kill(&process);
        set(&member, S("key"), S("value"));
        cr_assert_eq(pthread_create(&thread, NULL, commit_in_thread, &r), 0);
        while (!storage_is_waiting(member.storage))
                sched_yield();
        sent_before_ns = system_clock_boot_ns();
        etcd_process_continue(&process);
        pthread_join(thread, NULL);
        cr_assert_eq(r, 0);
        now_ns = system_clock_boot_ns();
        cr_expect_leq(storage_lease_left_ns(member.storage),
                      config.holder.lease_ns - (now_ns - sent_before_ns));
}

Test(etcd_storage, failed_attempts_of_a_commit_are_logged_once) {
        struct capture capture;
        char *text;

        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        for (int i = 0; i < 3; i++)
                inject((struct injected){ -ETIMEDOUT, .is_sent = false });
        capture_start(&capture, STDERR_FILENO);
        COMMIT(&member);
        text = capture_end(&capture);
        cr_expect_eq(capture_count(text, "cannot commit at etcd"), 1);
        cr_expect_eq(capture_count(text, " has answered the commit"), 1);
        free(text);
        check(&member);
}

Test(etcd_storage, observing_without_etcd_fails) {
        open_member(&member, "a");
        etcd_process_kill(&process);
        cr_expect_eq(storage_etcd_observe(member.storage, &member.reading), -EIO);
        cr_expect_gt(strlen(storage_etcd_reason(member.storage)), 0);
}

Test(etcd_storage, full_etcd_stores_nothing_of_a_commit) {
        static uint8_t value[100000];
        static char keys[100][16];
        int r = 0;

        teardown();
        start_etcd("--quota-backend-bytes=2000000");
        open_and_lead(&member, "a");
        for (int i = 0; r == 0 && i < 100; i++) {
                snprintf(keys[i], sizeof(keys[i]), "key %d", i);
                set(&member, slice_from_string(keys[i]), (struct slice){ value, sizeof(value) });
                r = commit(&member);
        }
        cr_expect_eq(r, -ENOSPC);
        cr_expect_gt(member.expected.n_lines, 0);
        set(&member, S("key"), S("value"));
        cr_expect_eq(commit(&member), -ENOSPC);
        cr_assert_eq(load(&member), 0); /* no other member can win */
        cr_expect(content_equal(&member.loaded, &member.expected));
}

/* Former values are removed: those of one key exceed the quota. */
Test(etcd_storage, overwriting_one_key_does_not_fill_etcd) {
        static uint8_t value[380000];

        teardown();
        start_etcd("--quota-backend-bytes=160000000");
        open_and_lead(&member, "a");
        for (int i = 0; i < 500; i++) {
                set(&member, S("key"), (struct slice){ value, sizeof(value) });
                COMMIT(&member);
        }
        check(&member);
}

/*
 * etcd reports the first transaction above its quota as refused, but stores it. This needs other
 * writers.
 */
Test(etcd_storage, commit_that_is_reported_as_refused_may_be_stored) {
        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        inject((struct injected){ -ENOSPC, .is_sent = true });
        COMMIT(&member);
        set(&member, S("other"), S("value"));
        inject((struct injected){ -ENOSPC, .is_sent = false });
        cr_expect_eq(commit(&member), -ENOSPC);
        check(&member);
}

Test(etcd_storage, refusal_after_an_open_attempt_decides_nothing) {
        static const int refusals[] = { -ENOSPC, -EACCES, -ENOTCONN, -EBADMSG };

        open_and_lead(&member, "a");
        for (size_t i = 0; i < 4; i++) {
                set(&member, S("key"), i % 2 == 0 ? S("a") : S("b"));
                inject((struct injected){ -ETIMEDOUT, .is_sent = false });
                inject((struct injected){ refusals[i], .is_sent = false });
                COMMIT(&member);
        }
        set(&member, S("key"), S("c"));
        inject((struct injected){ -EACCES, .is_sent = false });
        cr_expect_eq(commit(&member), -EIO);
        check(&member);
}

Test(etcd_storage, refuses_a_commit_above_the_limits_of_etcd) {
        static uint8_t value[1600000];
        static char keys[130][16];

        open_and_lead(&member, "a");
        set(&member, S("large"), (struct slice){ value, sizeof(value) });
        inject((struct injected){ -ETIMEDOUT,
                                  .is_sent = false }); /* after it, a refusal would decide nothing */
        cr_expect_eq(commit(&member), -EIO);
        for (size_t i = 0; i < 130; i++) {
                snprintf(keys[i], sizeof(keys[i]), "key %zu", i);
                set(&member, slice_from_string(keys[i]), S("value"));
        }
        cr_expect_eq(commit(&member), -EIO);
        cr_expect_eq(n_injected, 1); /* neither was sent */
        set(&member, S("key"), S("value"));
        COMMIT(&member);
        check(&member);
}

#define RECIPIENTS_BYTES_MAX (128 << 10) /* of a key: the engine limits its registrations */

/* The largest batch that the limits allow, with a step of the engine, fits. */
Test(etcd_storage, limits_leave_room_for_a_step) {
        static uint8_t value[2 << 20];
        static char keys[200][32];
        struct pending_notification *last;
        struct storage_limits limits;

        open_and_lead(&member, "a");
        limits = storage_limits(member.storage);
        for (size_t i = 0; i < limits.n_rows + ENGINE_STEP_CHANGES_MAX; i++) {
                snprintf(keys[i], sizeof(keys[i]), "key %zu", i);
                set(&member, slice_from_string(keys[i]), S(""));
        }
        member.rows[0].entry.value = (struct slice){ value, limits.n_bytes };
        member.rows[1].entry.value = (struct slice){ value, limits.entry_bytes };
        for (uint32_t i = 0; i < N_EXECUTION_KEYS; i++)
                execute(&member, EXECUTION_KEY_PLACES * i + 1);
        reply(&member, 1);
        notify(&member, S("key"));
        last = &member.rows[member.n_rows - 1].notification;
        last->value = (struct slice){ value, limits.entry_bytes };
        last->recipients = (struct slice){ value, RECIPIENTS_BYTES_MAX };
        notify(&member, (struct slice){ value, ENGINE_STEP_BYTES_MAX }); /* of expired keys */
        notify(&member, (struct slice){ value, UINT16_MAX });
        member.rows[member.n_rows - 1].notification.recipients =
                (struct slice){ value, RECIPIENTS_BYTES_MAX };
        member.forgotten_up_to = 0;
        COMMIT(&member);

        reply(&member, 5);
        notify(&member, S("key"));
        member.forgotten_up_to = 4;
        member.acknowledged = 1;
        COMMIT(&member);
        check(&member);
}

/* 7. Damage */

Test(etcd_storage, rows_without_a_header_are_refused) {
        open_and_lead(&member, "a");
        notify(&member, S("key"));
        COMMIT(&member);
        etcd_process_control(&process, "del " PREFIX "header");
        open_member(&other, "other");
        cr_expect_eq(lead(&other), -EBADMSG);
        cr_expect_eq(other.reading.election.header.mod_revision, 0);
}

/* Not an error: the other member has created the header. */
Test(etcd_storage, rows_of_another_winner_are_not_refused) {
        open_member(&other, "other");
        cr_assert_eq(storage_etcd_observe(other.storage, &other.reading), 0);
        open_and_lead(&member, "a");
        set(&member, S("key"), S("value"));
        COMMIT(&member);
        cr_expect_eq(storage_etcd_win(other.storage, &other.reading, 0), STORAGE_ETCD_LOST);
        cr_expect_eq(other.reading.election.header.member, 'a');
}

static const Etcd__KeyValue *get(struct etcd_client *client, struct slice key) {
        Etcd__RangeRequest request = ETCD__RANGE_REQUEST__INIT;
        const ProtobufCMessage *response;

        request.key = etcd_bytes(key);
        cr_assert_eq(etcd_call(client, ETCD_RANGE, &request.base, &response), 0);
        cr_assert_eq(((const Etcd__RangeResponse *)response)->n_kvs, 1);
        return ((const Etcd__RangeResponse *)response)->kvs[0];
}

static void put(struct etcd_client *client, struct slice key, struct slice value) {
        Etcd__PutRequest put = ETCD__PUT_REQUEST__INIT;
        Etcd__RequestOp operation = ETCD__REQUEST_OP__INIT, *operations[] = { &operation };
        Etcd__TxnRequest request = ETCD__TXN_REQUEST__INIT;
        const ProtobufCMessage *response;

        put.key = etcd_bytes(key);
        put.value = etcd_bytes(value);
        operation.request_case = ETCD__REQUEST_OP__REQUEST_REQUEST_PUT;
        operation.request_put = &put;
        request.success = operations;
        request.n_success = 1;
        cr_assert_eq(etcd_call(client, ETCD_TXN, &request.base, &response), 0);
}

/* Change the last byte of the last row in the value that has this row. */
static void damage(struct member *one, const struct row *row) {
        CLEANUP(buf_deinit) struct buf key = { 0 }, value = { 0 };
        struct etcd_config config = config_of("a").etcd;
        struct etcd_client *client;

        cr_assert_eq(etcd_client_new(&client, &config), 0);
        etcd_key_append(&key, PREFIX, &one->header.row_hash_key, row);
        buf_append_slice(&value, etcd_slice(get(client, buf_slice(&key))->value));
        value.data[value.length - 9] ^= 1; /* before the checksum */
        put(client, buf_slice(&key), buf_slice(&value));
        etcd_client_free(client);
}

Test(etcd_storage, damaged_values_are_found) {
        for (size_t i = 0; i < N_ROW_TYPES; i++) {
                struct row *row;

                open_and_lead(&member, "a");
                set(&member, S("key"), S("value"));
                row = add_row(&member, ROW_REGISTRATION);
                row->registration = (struct registration_row){ S("client"), S("key"), 3, S("user") };
                reply(&member, 1);
                execute(&member, 257);
                notify(&member, S("key"));
                COMMIT(&member);
                check(&member);

                damage(&member, &member.rows[i]);
                cr_expect_eq(lead(&other), -EBADMSG, "%zu", i);
                stop_member(&member);
                etcd_process_control(&process, "del --prefix " PREFIX);
        }
}

Test(etcd_storage, damaged_header_is_found) {
        open_and_lead(&member, "a");
        etcd_process_control(&process, "put " PREFIX "header damaged");
        cr_expect_eq(storage_etcd_observe(member.storage, &member.reading), -EBADMSG);
        cr_expect_str_eq(storage_etcd_reason(member.storage),
                         "the header in etcd cannot be used: it is damaged; its key is \"" PREFIX
                         "header\"");
        cr_expect_eq(commit(&member), -ESTALE);
}

static const struct {
        const char *name;
        uint32_t version;
} other_forms[] = {
        { "a newer statestored wrote it", STORED_FORM_VERSION + 1 },
        { "a newer statestored wrote it", UINT32_MAX },
        { "an older statestored wrote it", STORED_FORM_VERSION - 1 },
};

/* It is neither replaced nor called damaged. */
Test(etcd_storage, header_of_another_version_is_refused) {
        struct slice key = S(PREFIX "header");
        struct etcd_config config = config_of("a").etcd;
        struct etcd_client *client;

        cr_assert_eq(etcd_client_new(&client, &config), 0);
        for (size_t i = 0; i < N_ROWS(other_forms); i++) {
                CLEANUP(buf_deinit) struct buf stored = { 0 };
                const char *reason;

                open_and_lead(&member, "a");
                open_member(&other, "other");
                cr_assert_eq(storage_etcd_observe(other.storage, &other.reading), 0);
                buf_append_slice(&stored, key);
                wire_append_number(&stored, other_forms[i].version, 4);
                buf_append_string(&stored, "other fields");
                etcd_value_seal(&stored, 0, key.length);
                put(client, key, slice_skip(buf_slice(&stored), key.length));

                cr_expect_eq(storage_etcd_win(other.storage, &other.reading, 0), -EBADMSG);
                cr_expect_eq(lead(&other), -EBADMSG);
                reason = storage_etcd_reason(other.storage);
                cr_expect_not_null(strstr(reason, other_forms[i].name), "%s", reason);
                cr_expect_eq(commit(&member), -ESTALE);
                cr_expect(slice_equal(etcd_slice(get(client, key)->value),
                                      slice_skip(buf_slice(&stored), key.length)),
                          ROW(other_forms, i));
                stop_member(&member);
                stop_member(&other);
                etcd_process_control(&process, "del --prefix " PREFIX);
        }
        etcd_client_free(client);
}
