/* SPDX-License-Identifier: Apache-2.0 */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/explain.h"
#include "app/server.h"
#include "base/allocator.h"
#include "config/config.h"

/*
 * Open /dev/null for each of stdin, stdout and stderr that is closed. Otherwise a file that is opened later could get
 * descriptor 2, and log lines would be written to that file.
 */
static void occupy_standard_descriptors(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd >= 0)
                close(fd);
}

int main(int n_arguments, char **arguments) {
        struct config config;
        int exit_code = EXIT_SUCCESS;

        allocator_init();
        occupy_standard_descriptors();
        switch (config_read(n_arguments, arguments, false, &config)) {
        case CONFIG_RUN:
                exit_code = config.explain ? explain(&config) : server_run(&config, n_arguments, arguments);
                break;
        case CONFIG_DONE:
                break;
        case CONFIG_INVALID:
                exit_code = EXIT_INVALID_CONFIG;
                break;
        }

        config_deinit(&config);
        return exit_code;
}
