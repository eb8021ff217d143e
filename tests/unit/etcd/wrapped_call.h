/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "etcd/client.h"

/*
 * For tests that inject errors of etcd: the linker lets each caller of etcd_call() call
 * __wrap_etcd_call(), which the test defines. It may pass a call on to __real_etcd_call().
 */
int __real_etcd_call(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request,
                     const ProtobufCMessage **ret_response);
int __wrap_etcd_call(struct etcd_client *client, enum etcd_method method, const ProtobufCMessage *request,
                     const ProtobufCMessage **ret_response);
