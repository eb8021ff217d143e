/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/options.h"

/*
 * Where the store that is configured here is to be found: by the file that --config or STATESTORE_CONFIG names, and by
 * statestored's own variables in the environment. It stands in for what no option of ours says. OPTIONS_WRONG: what is
 * wrong with it has been said.
 */

/* Its broker; not as whom the store comes to it, for that is the store's alone. */
enum options_result store_config_take_broker(struct options *options);

/* Its pages; where nothing is known of them, where they are by custom. */
enum options_result store_config_take_pages(struct options *options);
