#!/bin/sh
# Lands files in the lake, and adds them to the manifest: ./land.sh FILE...
set -eu
mkdir -p lake/bronze/orders
for file; do
  # Copied under a hidden name first, so that nobody sees half a file.
  name=$(basename "$file")
  cp "$file" "lake/bronze/orders/.$name"
  mv "lake/bronze/orders/.$name" "lake/bronze/orders/$name"
done
for file; do
  shift
  set -- "$@" "lake/bronze/orders/$(basename "$file")"
done
exec lakewright manifest add "$@" --as acme/landing --payload '{"source": "web"}'
