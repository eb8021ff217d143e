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
        "UPDATE registrations SET hash = hash - 16 WHERE client = 'a'",
        "UPDATE registrations SET connection = 8 WHERE client = 'a'",
        "UPDATE registrations SET user = 'b' WHERE client = 'a'",
        "UPDATE registrations SET user = CAST(user AS BLOB) WHERE client = 'a'",
        "UPDATE registrations SET client = CAST(client AS BLOB) WHERE client = 'a'",
        "UPDATE replies SET outcome = 'deleted' WHERE slot = 3",
        "UPDATE replies SET outcome = 'never heard of' WHERE slot = 3",
        "UPDATE replies SET has_version = 0 WHERE slot = 3",
        "UPDATE replies SET version_wall_ms = 0 WHERE slot = 3",
        "UPDATE replies SET version_counter = version_counter + 1 WHERE slot = 3",
        "UPDATE replies SET forget_at_ms = forget_at_ms + 1 WHERE slot = 3",
        "UPDATE replies SET digest = zeroblob(16) WHERE slot = 3",
        "UPDATE replies SET digest = zeroblob(15) WHERE slot = 3",
        "UPDATE replies SET slot = 300 WHERE slot = 3",
        "UPDATE replies SET slot = 3 + (1 << 32) WHERE slot = 3",
        "UPDATE replies SET slot = -3 WHERE slot = 3",
        "UPDATE notifications SET sequence = sequence + 100",
        "UPDATE notifications SET version_wall_ms = version_wall_ms + 1",
        "UPDATE notifications SET version_counter = version_counter + (1 << 32)",
        "UPDATE notifications SET key = 'larger'",
        "UPDATE notifications SET key = CAST(key AS BLOB)",
        "UPDATE notifications SET value = 'another'",
        "UPDATE notifications SET value = CAST(value AS BLOB)",
        "UPDATE notifications SET value = NULL",
        "UPDATE notifications SET recipients = zeroblob(3)",
        "UPDATE notifications SET recipients = CAST(recipients AS TEXT)",
        "UPDATE notifications SET checksum = checksum + 1",
        "UPDATE meta SET value = value + 1 WHERE name = 'notification_sequence'",
        "UPDATE meta SET value = 0 WHERE name = 'notification_sequence'",
        "DELETE FROM meta WHERE name = 'notification_sequence'",
        "UPDATE meta SET value = randomblob(16) WHERE name = 'digest_key'",
        "UPDATE meta SET value = zeroblob(15) WHERE name = 'digest_key'",
        "UPDATE meta SET value = randomblob(16) WHERE name = 'row_hash_key'",
        "UPDATE meta SET name = 'another' WHERE name = 'digest_key'",
        "UPDATE meta SET value = '0123456789abcdef0123456789abcdef' WHERE name = 'instance_id'",
        "UPDATE meta SET value = value || '0' WHERE name = 'instance_id'",
        "UPDATE meta SET value = value - 1 WHERE name = 'clock_wall_ms'",
        "UPDATE meta SET value = value + 1 WHERE name = 'clock_counter'",
        "UPDATE meta SET value = value + 1 WHERE name = 'disconnect_epoch'",
        "UPDATE meta SET value = value + 1 WHERE name = 'reading_ms'",
        "UPDATE meta SET value = value + 1 WHERE name = 'shift_ms'",
        "UPDATE meta SET value = value + 1 WHERE name = 'commits'",
        "UPDATE meta SET value = value + 1 WHERE name = 'checksum'",
        "UPDATE meta SET value = value + 1 WHERE name = 'persistence'",
        "DELETE FROM meta WHERE name = 'persistence'",
        "DELETE FROM meta WHERE name = 'disconnect_epoch'",
        "DELETE FROM meta",
};

Test(storage_changed, changes_with_the_sqlite3_tool_are_detected) {
        for (size_t i = 0; i < N_ROWS(changes); i++) {
                damage_place_all(&damage);
                disk_sql(&damage.disk, changes[i]);
                cr_expect_not(damage_examine(&damage, changes[i], i));
                disk_close(&damage.disk);
        }
}
