/* SPDX-License-Identifier: Apache-2.0 */

/* The sources in their order, from the defaults to the command line; then the checks and the policy. */

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "config/console_users.h"
#include "config/option.h"
#include "config/policy_file.h"
#include "config/reading.h"

static void set_defaults(struct config_reading *reading) {
        for (size_t i = 0; i < n_settings; i++)
                if (config_options[i].default_value)
                        config_set(reading, &config_options[i], config_options[i].default_value,
                                   config_options[i].flag);
}

static void read_policy(struct config_reading *reading) {
        struct config *config = reading->config;

        reading->hint = "";
        if (!config->policy_file || !config_check_readable(reading, config->policy_file))
                return;
        config->policy =
                policy_file_read(config->policy_file, config->allow_unverified, config_take_fault, reading);
}

static void read_console_users(struct config_reading *reading) {
        struct config *config = reading->config;

        if (!config->console_users_file || !config_check_readable(reading, config->console_users_file))
                return;
        config->console_users = console_users_read(config->console_users_file, config_take_fault, reading);
}

enum config_result config_read(int n_arguments, char *const *argv, bool is_reload,
                               struct config *ret_config) {
        struct config_reading reading = {
                .config = ret_config, .program = "statestored", .hint = "", .is_reload = is_reload
        };

        *ret_config = (struct config){ 0 };
        config_read_arguments_first(&reading, n_arguments, argv);
        if (ret_config->help)
                config_print_help();
        else if (ret_config->version)
                printf("statestored %s\n", STATESTORED_VERSION);
        if (ret_config->help || ret_config->version)
                return CONFIG_DONE;

        set_defaults(&reading);
        config_read_file(&reading, ret_config->file);
        config_read_environment(&reading);
        reading.hint = "; see --help";
        config_read_arguments(&reading, n_arguments, argv);
        if (reading.n_faults == 0)
                config_complete(&reading);
        read_policy(&reading);
        read_console_users(&reading);
        if (ret_config->check_only)
                config_check_plausibility(&reading);

        if (reading.n_faults > 0)
                return CONFIG_INVALID;
        if (!ret_config->check_only)
                return CONFIG_RUN;
        printf("the configuration is valid\n");
        if (ret_config->data_dir && access(ret_config->data_dir, F_OK) < 0)
                printf("the data directory \"%s\" does not exist: the store creates it\n",
                       LOG_STRING(ret_config->data_dir));
        return CONFIG_DONE;
}

enum config_result config_read_addresses(const char *file, struct config *ret_config) {
        struct config_reading reading = { .config = ret_config, .program = "statestorectl", .hint = "" };

        *ret_config = (struct config){ 0 };
        set_defaults(&reading);
        config_read_file(&reading, file);
        config_read_environment(&reading);
        if (reading.n_faults == 0)
                config_complete_broker(&reading);
        return reading.n_faults > 0 ? CONFIG_INVALID : CONFIG_RUN;
}
