/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user properties of PROTOCOL.md "Requests" and "Replies". */
#define PROPERTY_TIMESTAMP          "__ts"
#define PROPERTY_FENCE              "__ft"
#define PROPERTY_SOURCE_ID          "__srcId"
#define PROPERTY_VERSION            "__protVer"
#define PROPERTY_DETAILS            "details"
#define PROPERTY_EXPIRES_IN         "expires_in_ms"
#define PROPERTY_STATUS             "__stat"
#define PROPERTY_STATUS_TEXT        "__stMsg"
#define PROPERTY_FAULT_NAME         "__propName"
#define PROPERTY_FAULT_VALUE        "__propVal"
#define PROPERTY_SUPPORTED_VERSIONS "__supProtMajVer"
#define PROPERTY_REQUEST_VERSION    "__requestProtVer"
#define PROPERTY_PERSIST            "aio-persistence"

#define PROTOCOL_VERSION "1.0" /* value of PROPERTY_VERSION */
#define STATUS_OK        "200" /* value of PROPERTY_STATUS in replies to requests that were executed */
