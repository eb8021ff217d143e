/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "option_table.h"

/* What the rows of the table set, and how a value is read: struct option's `set`. */

/* Those that any option may use; they write the row's field, of the type that stands here. */
int set_text(struct config *config, const struct option *option,
             const char *value); /* const char *, not empty */
int set_number(struct config *config, const struct option *option, const char *value); /* uint64_t */
int set_size(struct config *config, const struct option *option,
             const char *value); /* uint64_t, with units */
int set_switch(struct config *config, const struct option *option, const char *value); /* bool, on or off */

/* Those of one option each. */
int set_host(struct config *config, const struct option *option, const char *value);
int set_port(struct config *config, const struct option *option, const char *value);
int set_dev_listen(struct config *config, const struct option *option, const char *value);
int set_client_id(struct config *config, const struct option *option, const char *value);
int set_keepalive(struct config *config, const struct option *option, const char *value);
int set_presence_topic(struct config *config, const struct option *option, const char *value);
int set_node_id(struct config *config, const struct option *option, const char *value);
int set_dialect(struct config *config, const struct option *option, const char *value);
int set_persist(struct config *config, const struct option *option, const char *value);
int set_persist_property(struct config *config, const struct option *option, const char *value);
int set_http_listen(struct config *config, const struct option *option, const char *value);
int set_log_format(struct config *config, const struct option *option, const char *value);
int set_log_level(struct config *config, const struct option *option, const char *value);
