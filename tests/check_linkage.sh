#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the libraries that the unit test programs load: Criterion, libsodium, the C library, and the JSON or database
# library if it is tested. So the tested code, except that of test_conversion, test_link and
# test_http_server, needs no event loop, no MQTT library and no HTTP library.
# statestorectl loads no HTTP server and no library of a service manager. Exits with 1 if a program loads another library.
#
# usage: check_linkage.sh PROGRAM...

set -u

status=0
for program in "$@"; do
        needed=$(readelf --dynamic --wide "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
        case ${program##*/}/$needed in
        statestorectl/*libmicrohttpd* | statestorectl/*libsystemd*)
                echo "$program: loads more than statestorectl needs"
                status=1
                continue
                ;;
        statestorectl/*) continue ;;
        *libcriterion*) ;;
        *)
                echo "$program: is no unit test"
                status=1
                ;;
        esac
        for library in $needed; do
                case ${program##*/}/$library in
                test_storage*/libsqlite3.so.*) continue ;;
                test_etcd_*/libcurl.so.* | test_etcd_*/libprotobuf-c.so.*) continue ;;
                test_export*/libjansson.so.* | test_seeding/libjansson.so.* | test_pipeline_request/libjansson.so.*) continue ;;
                test_link/libuv.so.* | test_link/libmosquitto.so.* | test_link/libssl.so.* | test_link/libcrypto.so.*) continue ;;
                test_conversion/libmosquitto.so.*) continue ;;
                test_http_server/libuv.so.* | test_http_server/libmicrohttpd.so.*) continue ;;
                test_control/libjansson.so.* | test_starved_control/libjansson.so.*) continue ;;
                esac
                case $library in
                libcriterion.so.* | libsodium.so.* | libxxhash.so.* | libc.so.* | libm.so.* | ld-linux*) ;;
                libasan.so.* | libubsan.so.* | libgcc_s.so.*) ;; # the sanitizers
                *)
                        echo "$program: loads $library"
                        status=1
                        ;;
                esac
        done
done

[ $# -gt 0 ] || status=1
exit $status
