/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "config.h"
#include "server.h"

int main(int n_arguments, char **arguments) {
        struct config config;
        int exit_code = EXIT_SUCCESS;

        switch (config_read(n_arguments, arguments, &config)) {
        case CONFIG_RUN:
                exit_code = server_run(&config, n_arguments, arguments);
                break;
        case CONFIG_DONE:
                break;
        case CONFIG_WRONG:
                exit_code = EXIT_WRONG;
                break;
        }

        config_deinit(&config);
        return exit_code;
}
