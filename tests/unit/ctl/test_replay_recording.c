/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a recording for replay. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/replay_recording.h"

/* More names than the first buckets of a hash table. */
#define N_NAMES 1000

static struct request_recording recording;
static char file[] = "/tmp/statestore-test-recording-XXXXXX";
static FILE *lines;

static void setup(void) {
        int fd = mkstemp(file);

        cr_assert_geq(fd, 0);
        lines = fdopen(fd, "w");
        cr_assert_not_null(lines);
}

static void teardown(void) {
        request_recording_deinit(&recording);
        unlink(file);
}

TestSuite(replay_recording, .init = setup, .fini = teardown);

/* Record a GET. A negative number: without this name. */
static void record(int client, int topic) {
        fputs("{\"type\":\"request\",\"time\":7,\"topic\":\"t\",\"qos\":1,\"properties\":[],\"payload\":"
              "\"\","
              "\"correlation_data\":\"1\",\"verb\":\"GET\",\"key\":\"k\"",
              lines);
        if (client >= 0)
                fprintf(lines, ",\"client\":\"client-%d\"", client);
        if (topic >= 0)
                fprintf(lines, ",\"response_topic\":\"topic/%d\"", topic);
        fputs("}\n", lines);
}

static void read_recording(void) {
        cr_assert_eq(fclose(lines), 0);
        cr_assert_eq(request_recording_read(&recording, file), 0);
}

Test(replay_recording, numbers_names_in_the_order_of_their_first_occurrence) {
        for (int i = 0; i < N_NAMES; i++)
                record(N_NAMES - i, i);
        for (int i = 0; i < N_NAMES; i++)
                record(i + 1, i / 2);
        read_recording();

        cr_assert_eq(recording.n_requests, 2 * N_NAMES);
        cr_expect_eq(request_recording_n_clients(&recording), N_NAMES);
        for (size_t i = 0; i < N_NAMES; i++) {
                const struct recorded_request *first = &recording.requests[i];
                const struct recorded_request *second = &recording.requests[N_NAMES + i];

                cr_expect_eq(first->client, i);
                cr_expect_eq(first->response_topic, i);
                cr_expect_eq(second->client, N_NAMES - 1 - i);
                cr_expect_eq(second->response_topic, i / 2);
        }
}

Test(replay_recording, numbers_a_missing_name_like_any_other) {
        record(1, 1);
        record(-1, -1);
        record(2, 2);
        record(-1, 1);
        read_recording();

        cr_assert_eq(recording.n_requests, 4);
        cr_expect_eq(request_recording_n_clients(&recording), 3);
        cr_expect_eq(recording.requests[1].client, 1);
        cr_expect_eq(recording.requests[1].response_topic, 1);
        cr_expect_eq(recording.requests[2].client, 2);
        cr_expect_eq(recording.requests[2].response_topic, 2);
        cr_expect_eq(recording.requests[3].client, 1);
        cr_expect_eq(recording.requests[3].response_topic, 0);
}
