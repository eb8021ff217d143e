/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "app/explain.h"
#include "app/server.h"
#include "base/allocator.h"
#include "base/standard_descriptors.h"
#include "config/config.h"

int main(int n_arguments, char **arguments) {
        struct config config;
        int exit_code = EXIT_SUCCESS;

        allocator_init();
        standard_descriptors_open(O_RDWR | O_CLOEXEC);
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
