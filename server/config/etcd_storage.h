/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "storage/etcd/etcd.h"

/*
 * Describe the storage in etcd by the options, with a new number of the process, and the host name if the
 * member has no name. The caller sets the number of the member, alive and read_only. *ret_config borrows
 * from the options and from *password, which the caller owns. Returns 0; -EINVAL if the password or a file
 * of TLS cannot be read; or -errno if the host has no name. The cause is logged.
 */
int config_etcd_storage(const struct etcd_options *options, struct buf *password,
                        struct storage_etcd_config *ret_config);
