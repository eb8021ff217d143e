/* SPDX-License-Identifier: Apache-2.0 */

/* The store detects rows that were changed with the sqlite3 tool. */

#include "unit/storage/damage.h"
#include "unit/support/table.h"

static struct damage damage;

static void setup(void) {
        damage_init(&damage);
}

static void teardown(void) {
        damage_deinit(&damage);
}

TestSuite(storage_changed, .init = setup, .fini = teardown, .timeout = 3600);

static const char *const rows[] = {
        "UPDATE entries SET checksum = checksum + 1",
        "UPDATE entries SET number = number + 16",
        "UPDATE entries SET tag = tag + 1",
        "UPDATE entries SET content = CAST(replace(CAST(content AS TEXT), 'sensors', 'another') AS BLOB)",
        "UPDATE entries SET content = (SELECT content FROM entries ORDER BY number DESC LIMIT 1)",
        "INSERT INTO entries VALUES (0, 0, 0, x'')",
        "UPDATE registrations SET checksum = checksum + 1",
        "UPDATE registrations SET number = number - 16",
        "UPDATE registrations SET tag = tag + 1",
        "UPDATE registrations SET content = substr(content, 1, length(content) - 1)",
        "UPDATE registrations SET content = content || x'00'",
        "UPDATE registrations SET content = (SELECT content FROM replies LIMIT 1)",
        "UPDATE replies SET checksum = checksum + 1",
        "UPDATE replies SET number = number + 300",
        "UPDATE replies SET number = -number - 1",
        "UPDATE replies SET tag = 1",
        "UPDATE replies SET content = x''",
        "UPDATE executions SET checksum = checksum + 1",
        "UPDATE executions SET number = number + 300",
        "UPDATE executions SET content = (SELECT content FROM replies LIMIT 1)",
        "UPDATE notifications SET checksum = checksum + 1",
        "UPDATE notifications SET number = number + 100",
        "UPDATE notifications SET number = -number",
        ("UPDATE notifications SET content = (SELECT content FROM notifications ORDER BY number DESC)"
         " WHERE number = (SELECT min(number) FROM notifications)"),
        "UPDATE header SET checksum = checksum + 1",
        "UPDATE header SET content = substr(content, 1, length(content) - 1)",
        "UPDATE header SET number = 2",
        "DELETE FROM header",
};

Test(storage_changed, changes_with_the_sqlite3_tool_are_detected) {
        for (size_t i = 0; i < N_ROWS(rows); i++) {
                damage_place_all(&damage);
                disk_sql(&damage.disk, rows[i]);
                cr_expect_not(damage_examine(&damage, rows[i], i));
                disk_close(&damage.disk);
        }
}
