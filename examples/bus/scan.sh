#!/usr/bin/env bash
# Approves or refuses one landed file: ./scan.sh ITEM. Exit code 0 approves it.
set -euo pipefail
file=${1#file://}
awk -F, 'NR > 1 && $3 !~ /^[0-9]+([.][0-9]+)?$/ { print "line " NR ": " $3 " is no amount" >"/dev/stderr"; exit 1 }' "$file"
# What later programs may want to know.
echo "{\"lines\": $(($(wc -l <"$file") - 1))}" >"$LAKEWRIGHT_PAYLOAD"
