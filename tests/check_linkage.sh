#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Reads which libraries the unit tests load: the test framework, the hash, the cryptography and the C library, and, where it is
# tested, what reads the configuration file or JSON, or stores the database; nothing else. So what they test needs no
# event loop and no MQTT library. Exits with 1 where one loads another.
#
# usage: check_linkage.sh PROGRAM...

set -u

status=0
for program in "$@"; do
        needed=$(readelf --dynamic --wide "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
        case $needed in
        *libcriterion*) ;;
        *)
                echo "$program: is no unit test"
                status=1
                ;;
        esac
        for library in $needed; do
                case ${program##*/}/$library in
                test_storage*/libsqlite3.so.*) continue ;;
                test_config*/libinih.so.* | test_policy_file/libinih.so.* | test_starved_policy/libinih.so.*) continue ;;
                test_record*/libjansson.so.* | test_seed*/libjansson.so.*) continue ;;
                test_control/libjansson.so.* | test_starved_control/libjansson.so.*) continue ;;
                esac
                case $library in
                libcriterion.so.* | libxxhash.so.* | libsodium.so.* | libc.so.* | libm.so.* | ld-linux*) ;;
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
