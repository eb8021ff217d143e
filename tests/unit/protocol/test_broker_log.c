/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <string.h>

#include "protocol/broker_log.h"
#include "unit/support/table.h"

#define S    SLICE_LITERAL
#define TEXT "Outgoing messages are being dropped for client "

static const struct {
        struct slice line, client_id;
} drops[] = {
        { S(TEXT "a."), S("a") },
        { S("1700000000: " TEXT "client-1."), S("client-1") },
        { S("2026-01-02T03:04:05Z: " TEXT "client-1."), S("client-1") },
        { S("2026-01-02 03:04:05.678+0100: " TEXT "client-1."), S("client-1") },
        { S("1: " TEXT "a.b. c: d."), S("a.b. c: d") },
        { S("1: " TEXT ".."), S(".") },
        { S("1: " TEXT TEXT "a."), S(TEXT "a") },
        { S("1: " TEXT "\xc3\xa9."), S("\xc3\xa9") },
};

Test(broker_log, reads_the_client_of_a_drop) {
        for (size_t i = 0; i < N_ROWS(drops); i++) {
                struct slice client_id;

                cr_assert(broker_log_read_drop(drops[i].line, &client_id), "row %zu", i);
                cr_expect(slice_equal(client_id, drops[i].client_id), "row %zu", i);
        }
}

/*
 * Other lines; also lines that mosquitto 2.0.11 logs for a client whose id or user name imitates a
 * drop.
 */
static const struct slice others[] = {
        S(""),
        S("1: "),
        S("1: " TEXT),
        S("1: " TEXT "."),
        S("1: " TEXT "a"),
        S("1 " TEXT "a."),
        S("1:" TEXT "a."),
        S(" " TEXT "a."),
        S("Jan 1: " TEXT "a."),
        S("1: 2: x " TEXT "a."),
        S("1: New client connected from 127.0.0.1:1 as " TEXT "a. (p5, c1, k60)."),
        S("1: New client connected from 127.0.0.1:1 as x (p5, c1, k60, u'" TEXT "a.').."),
        S("1: Client 1: " TEXT "a. closed its connection."),
        S("Client : " TEXT "a. disconnected."),
        S("Client 1: " TEXT "a. been disconnected by administrative action."),
        S("1: outgoing messages are being dropped for client a."),
};

Test(broker_log, ignores_other_lines) {
        for (size_t i = 0; i < N_ROWS(others); i++) {
                struct slice client_id;

                cr_expect_not(broker_log_read_drop(others[i], &client_id), "row %zu", i);
        }
}

Test(broker_log, ignores_a_line_that_may_be_cut) {
        char line[BROKER_LOG_LINE_MAX];
        struct slice client_id;

        memset(line, '.', sizeof(line));
        memcpy(line, "1: " TEXT, strlen("1: " TEXT));

        cr_expect_not(broker_log_read_drop((struct slice){ (uint8_t *)line, sizeof(line) }, &client_id));
        cr_expect(broker_log_read_drop((struct slice){ (uint8_t *)line, sizeof(line) - 1 }, &client_id));
}
