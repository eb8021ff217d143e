/* SPDX-License-Identifier: Apache-2.0 */

/* What the console consists of beside its server: its files, and who may use it. */

#include <criterion/criterion.h>

#include "http/console/files.h"
#include "http/console/origin.h"
#include "unit/support/table.h"

#define S(text) slice_from_string(text)

#define PAGE_BYTES_MAX 80000

Test(console_parts, files_are_small) {
        size_t n_bytes = 0;

        cr_assert_gt(n_console_files, 0);
        for (size_t i = 0; i < n_console_files; i++)
                n_bytes += console_files[i].content.length;
        cr_expect_leq(n_bytes, PAGE_BYTES_MAX);
}

static const struct {
        const char *name;
        bool is_address;
} hosts[] = {
        { "127.0.0.1", true },     { "127.0.0.1:9464", true },   { "[::1]:9464", true }, { "[::1]", true },
        { "localhost:1", true },   { "LOCALHOST", true },        { "10.0.0.1", true },   { "", false },
        { "evil.example", false }, { "127.0.0.1.evil", false },  { "[::1", false },      { "[::1]x", false },
        { "localhost.x", false },  { "evil.example:80", false }, { "::1", false },
};

Test(console_parts, hosts_by_address) {
        for (size_t i = 0; i < N_ROWS(hosts); i++)
                cr_expect_eq(console_host_is_address(S(hosts[i].name)), hosts[i].is_address, ROW(hosts, i));
        cr_expect_not(console_host_is_address((struct slice){ 0 }));
}

static const struct {
        const char *name, *host;
        bool is_own;
} origins[] = {
        { "http://127.0.0.1:80", "127.0.0.1:80", true },
        { "https://Store.example", "store.example", true },
        { "http://127.0.0.1:81", "127.0.0.1:80", false },
        { "http://127.0.0.1", "127.0.0.1:80", false },
        { "http://127.0.0.1:80.evil", "127.0.0.1:80", false },
        { "http://evil.example/127.0.0.1:80", "127.0.0.1:80", false },
        { "null", "null", false },
        { "", "", false },
        { "//", "", false },
        { "http://", "", false },
};

Test(console_parts, origins_of_the_same_host) {
        for (size_t i = 0; i < N_ROWS(origins); i++)
                cr_expect_eq(console_origin_is_own(S(origins[i].name), S(origins[i].host)),
                             origins[i].is_own, ROW(origins, i));
}
