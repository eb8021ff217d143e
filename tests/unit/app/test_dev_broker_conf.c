/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "app/dev_broker_conf.h"
#include "base/array.h"

static const struct dev_broker_conf usual = { .address = "127.0.0.1",
                                              .port = 4711,
                                              .plugin = "/a folder/x.so" };

/* The caller frees the text. */
static char *text_of(const struct dev_broker_conf *conf) {
        struct buf buf = { 0 };

        buf_append_string(&buf, "\n");
        dev_broker_conf_append(&buf, conf);
        buf_append(&buf, "", 1);
        cr_assert_not(buf_failed(&buf));
        return (char *)buf.data;
}

Test(dev_broker_conf, has_the_given_listener_and_plugin) {
        char *text = text_of(&usual);

        cr_expect_not_null(strstr(text, "\nlistener 4711 127.0.0.1\n"));
        cr_expect_not_null(strstr(text, "\nplugin /a folder/x.so\n"));
        cr_expect_null(strstr(text, "1883"));
        cr_expect_null(strstr(text, "/usr/local"));
        free(text);
}

Test(dev_broker_conf, listens_at_another_address) {
        struct dev_broker_conf open_to_all = usual;
        char *text;

        open_to_all.address = "0.0.0.0";
        text = text_of(&open_to_all);
        cr_expect_not_null(strstr(text, "\nlistener 4711 0.0.0.0\n"));
        cr_expect_null(strstr(text, "127.0.0.1"));
        free(text);
}

/* conf/mosquitto.conf explains these settings. */
Test(dev_broker_conf, keeps_the_settings_for_latency_and_bursts) {
        static const char *const lines[] = { "\nallow_anonymous true\n", "\nset_tcp_nodelay true\n",
                                             "\nmax_inflight_messages 1000\n", "\npersistence false\n" };
        char *text = text_of(&usual);

        for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
                cr_expect_not_null(strstr(text, lines[i]), "%s", lines[i]);
        free(text);
}

/* mosquitto uses the last line of each option. */
Test(dev_broker_conf, has_higher_limits_than_a_broker_with_many_users) {
        static const char *const limits[][2] = { { "\nmax_queued_messages ", "1000000\n" },
                                                 { "\nmax_queued_bytes ", "536870912\n" } };
        char *text = text_of(&usual);

        for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
                const char *last = NULL, *at = text;

                while ((at = strstr(at, limits[i][0])))
                        last = at += strlen(limits[i][0]);
                cr_assert_not_null(last, "%s", limits[i][0]);
                cr_expect_eq(strncmp(last, limits[i][1], strlen(limits[i][1])), 0, "%s", limits[i][0]);
        }
        free(text);
}

Test(dev_broker_conf, keeps_root_if_started_by_root) {
        struct dev_broker_conf by_root = usual;
        char *text = text_of(&usual);

        cr_expect_null(strstr(text, "\nuser "));
        free(text);

        by_root.is_root = true;
        text = text_of(&by_root);
        cr_expect_not_null(strstr(text, "\nuser root\n"));
        free(text);
}
