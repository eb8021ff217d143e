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

static const char *const changes[] = {
        "UPDATE entries SET value = 'another' WHERE key = 'large'",
        "UPDATE entries SET value = CAST(value AS BLOB) WHERE key = 'large'",
        "UPDATE entries SET version_counter = version_counter + 1 WHERE key = 'large'",
        "UPDATE entries SET version_counter = version_counter + (1 << 32) WHERE key = 'large'",
        "UPDATE entries SET version_wall_ms = version_wall_ms + 1 WHERE key = 'large'",
        "UPDATE entries SET expires_at_ms = 0 WHERE key = 'large'",
        "UPDATE entries SET fence = NULL WHERE fence IS NOT NULL",
        "UPDATE entries SET fence = '000000000000005:00006:other' WHERE fence IS NOT NULL",
        "UPDATE entries SET fence = '000000000000005:00006:node' WHERE key = 'large'",
        "UPDATE entries SET checksum = checksum + 1 WHERE key = 'large'",
        "UPDATE entries SET key = 'larger' WHERE key = 'large'",
        "INSERT INTO entries VALUES (0, 'more', 0, 0, NULL, NULL, 0, '')",
        "UPDATE entries SET hash = hash + 16 WHERE key = 'large'",
        "UPDATE registrations SET checksum = checksum + 1",
        "UPDATE registrations SET hash = hash - 16",
        "UPDATE registrations SET record = substr(record, 1, length(record) - 1)",
        "UPDATE registrations SET record = record || x'00'",
        "UPDATE registrations SET record = (SELECT record FROM replies LIMIT 1)",
        "UPDATE replies SET checksum = checksum + 1",
        "UPDATE replies SET number = number + 300",
        "UPDATE replies SET number = -number - 1",
        "UPDATE replies SET record = x''",
        "UPDATE executions SET checksum = checksum + 1",
        "UPDATE executions SET place = place + 300",
        "UPDATE executions SET record = (SELECT record FROM replies LIMIT 1)",
        "UPDATE notifications SET checksum = checksum + 1",
        "UPDATE notifications SET sequence = sequence + 100",
        "UPDATE notifications SET sequence = -sequence",
        ("UPDATE notifications SET record = (SELECT record FROM notifications ORDER BY sequence DESC)"
         " WHERE sequence = (SELECT min(sequence) FROM notifications)"),
        "UPDATE header SET checksum = checksum + 1",
        "UPDATE header SET record = substr(record, 1, length(record) - 1)",
        "UPDATE header SET number = 2",
        "DELETE FROM header",
};

Test(storage_changed, changes_with_the_sqlite3_tool_are_detected) {
        for (size_t i = 0; i < N_ROWS(changes); i++) {
                damage_place_all(&damage);
                disk_sql(&damage.disk, changes[i]);
                cr_expect_not(damage_examine(&damage, changes[i], i));
                disk_close(&damage.disk);
        }
}
