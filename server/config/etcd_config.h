/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "storage/etcd/etcd.h"

/*
 * The storage that the options describe, with a new number of the process, and the host name if the
 * member has no name. *ret_config borrows from the options and from *password, which the caller owns.
 * Returns 0; -EINVAL if the password cannot be read (logged); -errno if the host has no name; or
 * -ENOMEM.
 */
int etcd_config_from_options(const struct etcd_options *options, struct buf *password,
                             struct storage_etcd_config *ret_config);
