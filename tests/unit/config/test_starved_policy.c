/* SPDX-License-Identifier: Apache-2.0 */

/* Reading a policy when the n-th allocation fails: only that one, or also all later ones. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/policy_file.h"
#include "policy/policy.h"
#include "unit/support/memory.h"

static void count_fault(void *userdata, const char *where, const char *what) {
        (void)where;
        (void)what;
        ++*(unsigned int *)userdata;
}

/* Exactly one fault is reported, and no consequential ones. */
Test(starved_policy, is_read_completely_or_not_at_all) {
        static const char text[] = "[a]\naccess = read\nclient = c\npattern = a*\nbinary = YQ==\n"
                                   "[b]\naccess = write\nany = yes\nuser = u\nstring = {user}\n";
        int fd = memfd_create("policy", 0);
        char name[64];

        cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        for (uint64_t n = 1;; n++) {
                unsigned int n_faults = 0;
                struct policy *policy;
                uint64_t n_failed;

                memory_starve(n, n % 2 ? 1 : UINT64_MAX);
                policy = policy_file_read(name, false, count_fault, &n_faults);
                n_failed = memory_stop_failing();
                cr_expect_eq(!policy, n_failed > 0, "allocation %lu", n);
                cr_expect_eq(n_faults, n_failed > 0, "allocation %lu", n);
                policy_free(policy);
                if (n_failed == 0)
                        break;
        }
        close(fd);
}
