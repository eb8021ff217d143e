/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Whether a browser names this server by an IP address or localhost. Another name in Host may be one
 * that an attacker has pointed to this address, so that the attacker's page can read the replies (DNS
 * rebinding).
 */
bool console_host_is_address(struct slice host);

/*
 * Whether the Origin of a request is the page of the console at this Host. A TLS proxy changes the
 * scheme, so only the host and the port are compared. A browser sends "null" for a page without an
 * origin.
 */
bool console_origin_is_own(struct slice origin, struct slice host);
