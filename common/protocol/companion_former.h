/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the store still uses of version 6 of the companion protocol. This header goes when the store
 * sends and receives frames.
 */

#define COMPANION_TRACK        COMPANION_CONTROL "track"
#define COMPANION_UNTRACK      COMPANION_CONTROL "untrack"
#define COMPANION_DELIVER      COMPANION_CONTROL "deliver"
#define COMPANION_KICK         COMPANION_CONTROL "kick"
#define COMPANION_DISCONNECTED COMPANION_SYS "disconnected"
#define COMPANION_SLOW_WATCHER COMPANION_SYS "slow-watcher"
#define COMPANION_DELIVERED    COMPANION_SYS "delivered"
#define COMPANION_TAKEOVER     COMPANION_SYS "takeover"

#define COMPANION_PROPERTY           "statestore-"
#define COMPANION_PROPERTY_MAC       COMPANION_PROPERTY "mac" /* connection ":" sequence ":" MAC in hexadecimal */
#define COMPANION_PROPERTY_CLIENT_ID COMPANION_PROPERTY "client-id"
#define COMPANION_PROPERTY_USERNAME  COMPANION_PROPERTY "username" /* absent if the client has no user name */

/*
 * A MAC key, and the last sequence number that the store accepted from requests with a MAC under
 * this key.
 */
struct companion_key_state {
        bool is_known; /* false: there is no such key */
        uint8_t key[COMPANION_KEY_SIZE];
        uint64_t sequence;
};

/* present: the MAC key of the last WELCOME. former: the MAC key before it. */
struct companion_key_states {
        struct companion_key_state present, former;
};
