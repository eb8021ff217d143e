/* SPDX-License-Identifier: Apache-2.0 */

#include "config_help.h"

#include <stdio.h>

#include "option_table.h"

void config_help_print(void) {
        printf("Usage: statestored [OPTION]...\n"
               "A state store beside an MQTT 5 broker, for clients of the Azure IoT Operations state store\n"
               "protocol: it keeps keys, values, locks and who wants to be notified.\n"
               "\n"
               "  --config FILE                   read options from here\n");
        for (size_t i = 0; i < n_config_options; i++) {
                int width = printf(options[i].argument ? "  %s %s" : "  %s", options[i].flag,
                                   options[i].argument);

                printf("%*s%s", width < 34 ? 34 - width : 1, "", options[i].help);
                if (options[i].initial && options[i].argument)
                        printf(" (%s)", options[i].initial);
                printf("\n");
        }
        printf("  --explain CLIENT USER VERB KEY  say which rule of the policy decides, and do nothing\n"
               "  --check-config                  say whether all this can be used, and do nothing\n"
               "  --version                       print the version\n"
               "  --help, -h                      print this\n"
               "\n"
               "A flag beats its environment variable, that beats the file, and that the default in "
               "parentheses.\n"
               "See statestored.conf for the names in file and environment.\n"
               "\n"
               "It runs until SIGINT or SIGTERM, then answers what it has been asked and exits with 0. Exit "
               "1: the\n"
               "broker refuses it at start, or what is stored cannot be used; 2: a wrong option.\n");
}
