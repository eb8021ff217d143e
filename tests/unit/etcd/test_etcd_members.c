/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of the members of a real etcd. */

#include <criterion/criterion.h>
#include <errno.h>

#include "etcd/members.h"
#include "support/etcd_process.h"
#include "unit/etcd/wrapped_call.h"

static struct etcd_process process;
static int status_error; /* with which each call for a status fails; 0: none */
static int list_error;   /* with which the next call for the list fails */

static int take_error(int *error) {
        int taken = *error;

        *error = 0;
        return taken;
}

int __wrap_etcd_call(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request,
                     const ProtobufCMessage **ret_response) {
        if (method == ETCD_STATUS && status_error < 0)
                return status_error;
        if (method == ETCD_MEMBER_LIST && list_error < 0)
                return take_error(&list_error);
        return __real_etcd_call(client, method, request, ret_response);
}

static void setup(void) {
        etcd_process_start(&process, NULL);
}

static void teardown(void) {
        etcd_process_stop(&process);
}

TestSuite(etcd_members, .init = setup, .fini = teardown);

struct expected {
        bool is_unlisted, has_status, is_refused;
        size_t n_members;
};

static void take_member(void *userdata, const struct etcd_member *member) {
        struct expected *expected = userdata;

        expected->n_members++;
        if (expected->is_unlisted)
                cr_expect_null(member->name);
        else
                cr_expect_str_eq(member->name, "default");
        cr_expect_eq(member->reason == NULL, expected->has_status);
        cr_expect_eq(member->version != NULL, expected->has_status);
        cr_expect_eq(member->is_refused, expected->is_refused);
}

static void expect_member(struct expected expected) {
        const char *endpoints[] = { process.url };
        const struct etcd_config config = { .endpoints = endpoints, .n_endpoints = 1, .timeout_ms = 5000 };

        cr_assert_eq(etcd_members_query(&config, !expected.is_unlisted, take_member, &expected), 0);
        cr_expect_eq(expected.n_members, 1);
}

Test(etcd_members, member_that_answers_has_a_status) {
        expect_member((struct expected){ .has_status = true });
}

/* etcd 3.6.16 with users refuses it so, but 3.4.23 does not. */
Test(etcd_members, member_that_refuses_its_status_is_not_away) {
        status_error = -EACCES;
        expect_member((struct expected){ .is_refused = true });
        status_error = -ENOTCONN;
        expect_member((struct expected){ .is_refused = false });
}

Test(etcd_members, those_of_the_configuration_are_asked_without_the_list) {
        expect_member((struct expected){ .is_unlisted = true, .has_status = true });
}

Test(etcd_members, the_next_endpoint_has_the_list_if_one_is_no_etcd) {
        const char *endpoints[] = { process.url, process.url };
        const struct etcd_config config = { .endpoints = endpoints, .n_endpoints = 2, .timeout_ms = 5000 };
        struct expected expected = { .has_status = true };

        list_error = -EBADMSG;
        cr_assert_eq(etcd_members_query(&config, true, take_member, &expected), 0);
        cr_expect_eq(expected.n_members, 1);
}
