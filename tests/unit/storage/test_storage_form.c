/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What STORED_FORM_VERSION (storage/stored_form.h) stands for: bytes, places, keys, tables and names. If a
 * test fails after a change, raise the version, then change what the test expects. Without a new version, a
 * store that was built before the change calls the data damaged, or reads it wrongly.
 */

#include <criterion/criterion.h>
#include <inttypes.h>
#include <sqlite3.h>

#include "base/base16.h"
#include "base/cleanup.h"
#include "engine/outcome.h"
#include "storage/etcd/header.h"
#include "storage/etcd/keys.h"
#include "storage/sqlite/rows.h"
#include "storage/sqlite/schema.h"
#include "storage/stored_form.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

Test(storage_form, version) {
        cr_expect_eq(STORED_FORM_VERSION, 10);
}

#define VERSION                                                                                             \
        { 0x1001, 0x1002 }
#define RESULT                                                                                              \
        { .version = VERSION, .outcome = OUTCOME_DELETED, .has_version = true }

static const struct hash_key hash_key = { { 1 } };

/* What is stored: the number and the tag in SQLite, the key in etcd, and the bytes. */
static const struct {
        struct row row;
        const char *stored;
} rows[] = {
        { { ROW_ENTRY,
            .entry = { S("key"), S("value"), VERSION, 0x1003, true, { 0x1004, 0x1005, S("node") } } },
          "9A8CE9A7E1AD4933 6EB0F848BC742CAD /entry/3349ADE1A7E98C9AAD2C74BC48F8B06E 4B000000036B6579"
          "0000000576616C7565000000000000100100001002000000000000100301000000000000100400000000000010"
          "05000000046E6F6465" },
        { { ROW_REGISTRATION, .registration = { S("client"), S("key"), 0x1001, S("user") } },
          "CF74A28B4AF2E6BA 8391B654E76579B2 /registration/BAE6F24A8BA274CFB27965E754B69183 520000000"
          "6636C69656E74000000036B657900000000000010010000000475736572" },
        { { ROW_REPLY, .reply = { 0x1001, { { 1, 2 } }, RESULT, 0x1003 } },
          "1001 0 /reply/0000000000001001 41000000000000100101020000000000000000000000000000000000076"
          "4656C65746564010000000000001001000010020000000000001003" },
        { { ROW_EXECUTION, .execution = { 0x1043, RESULT } },
          "43 0 /execution/0000000000000040 4500000000000010430000000764656C6574656401000000000000100"
          "100001002" },
        { { ROW_NOTIFICATION,
            .notification = { 0x1001, VERSION, S("key"), S("value"), S("recipients"), NULL } },
          "1001 0 /notification/0000000000001001 4E0000000000001001000000000000100100001002000000036B"
          "6579010000000576616C75650000000A726563697069656E7473" },
};

static void expect(struct buf *found, const char *stored) {
        cr_expect(strcmp(buf_text(found), stored) == 0,
                  "raise STORED_FORM_VERSION, then change this list\nfound:    %s\nexpected: %s",
                  buf_text(found), stored);
}

Test(storage_form, rows) {
        for (size_t i = 0; i < N_ROWS(rows); i++) {
                CLEANUP(buf_deinit) struct buf bytes = { 0 }, found = { 0 };
                struct row_place place = row_place_of(&rows[i].row, &hash_key);

                buf_append_format(&found, "%" PRIX64 " %" PRIX64 " ", place.number, place.tag);
                etcd_key_append(&found, "/", &hash_key, &rows[i].row);
                buf_append_string(&found, " ");
                stored_row_append(&bytes, &rows[i].row);
                base16_append(&found, buf_slice(&bytes));
                expect(&found, rows[i].stored);
        }
}

static const struct etcd_header header = {
        .state = { .n_commits = 0x1001,
                   .node_id = "node",
                   .digest_key = { { 1 } },
                   .row_hash_key = { { 2 } },
                   .table_key = { { 3 } },
                   .token_key = { { 4 }, { 5 } },
                   .instance_id = "0123456789abcdef0123456789abcdef",
                   .served_broker_run = 0x1002,
                   .clock = VERSION,
                   .keys_may_be_lost = true,
                   .notification_sequence = 0x1004,
                   .reading_ms = 0x1005,
                   .shift_ms = 0x1006 },
        .acknowledged = 0x1007,
        .forgotten_up_to = 0x1008,
        .last_reply = 0x1009,
        .cluster = 0x100A,
        .transaction = { 6 },
        .holder = { .term = 0x100B,
                    .name = "a",
                    .member = 0x100C,
                    .process = 0x100D,
                    .has_given_up = true,
                    .sent_ns = 0x100E,
                    .lease_ns = ELECTION_LEASE_MIN_NS,
                    .wall_ms = 0x100F },
};

#define STATE_HEADER                                                                                        \
        "48000000046E6F6465010000000000000000000000000000000200000000000000000000000000000003000000"        \
        "000000000000000000000000040000000000000000000000000000000000000000000000000000000000000005"        \
        "000000000000000000000000000000000000000000000000000000000000000000002030313233343536373839"        \
        "616263646566303132333435363738396162636465660000000000001002000000000000100100001002010000"        \
        "000000001004000000000000100500000000000010060000000000001001"

Test(storage_form, headers) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 }, found = { 0 };

        stored_header_append(&bytes, &header.state);
        base16_append(&found, buf_slice(&bytes));
        expect(&found, STATE_HEADER);

        buf_reset(&bytes);
        buf_reset(&found);
        etcd_header_append(&bytes, &header);
        base16_append(&found, buf_slice(&bytes));
        expect(&found,
               "0000000A000000D2" STATE_HEADER
               "000000000000100700000000000010080000000000001009000000000000100B000161000000000000100C0000"
               "00000000100D01000000000000100E000000003B9ACA00000000000000100F000000000000100A060000000000"
               "00000000000000000000");
}

Test(storage_form, tables_of_sqlite) {
        sqlite3_stmt *statement;
        sqlite3 *db;

        cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
        cr_assert_eq(schema_create(db), SQLITE_OK);
        cr_assert_eq(sqlite3_prepare_v2(db,
                                        "SELECT group_concat(DISTINCT replace(sql, name, '...')), "
                                        "group_concat(name) FROM sqlite_schema",
                                        -1, &statement, NULL),
                     SQLITE_OK);
        cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
        cr_expect_str_eq((const char *)sqlite3_column_text(statement, 0),
                         "CREATE TABLE ... (number INTEGER PRIMARY KEY, tag INTEGER NOT NULL, "
                         "checksum INTEGER NOT NULL, content BLOB NOT NULL)");
        cr_expect_str_eq((const char *)sqlite3_column_text(statement, 1),
                         "entries,registrations,replies,executions,notifications,header");
        sqlite3_finalize(statement);
        sqlite3_close(db);
}

static const char stored_names[] =
        "done,deleted,nothing,condition not met,syntax error,wrong number of arguments,empty key,"
        "missing timestamp,malformed timestamp,timestamp too far,fence too far,not authorized,fence "
        "required,"
        "fence too old,client unknown,key too long to notify,quota exceeded,value too large,out of memory,"
        "disk full,storage failed,";

static bool is_ever_remembered(enum outcome outcome) {
        for (enum verb verb = 0; verb < N_VERBS; verb++)
                if (verbs[verb].flags & VERB_IS_REMEMBERED && outcome_is_possible(verb, outcome))
                        return outcome != OUTCOME_VERSION_CHANGED; /* such requests are never repeated */
        return false;
}

Test(storage_form, names_of_remembered_outcomes) {
        CLEANUP(buf_deinit) struct buf names = { 0 };

        for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++)
                if (is_ever_remembered(outcome))
                        buf_append_format(&names, "%s,", outcome_name(outcome));
        cr_expect_str_eq(buf_text(&names), stored_names);
}
