#!/bin/sh
# How much memory `ackclock diagnose` takes for a connection, at a million of them: once each is one
# SYN, once each has a request and an answer. Prints the bytes per connection: the peak of the resident
# memory less that for a capture of one connection, divided by the number. Needs GNU time.
#
#   bench/diagnose-memory.sh [CONNECTIONS, default 1000000] [DIRECTORY FOR 1.2 GB, default /tmp]
#
# ACKCLOCK names the program; by default it is built here.
set -eu
cd "$(dirname "$0")/.."
number=${1:-1000000}
dir=$(mktemp -d "${2:-/tmp}/ackclock-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT INT TERM
if [ -z "${ACKCLOCK:-}" ]; then
    cargo build --profile full --quiet -p ackclock
    ACKCLOCK=${CARGO_TARGET_DIR:-target}/full/ackclock
fi
make() { cargo run --release --quiet -p ackclock-ingest --example many_connections -- "$1" "$2" > "$dir/many.pcap"; }

# peak of the resident memory in kB and processor seconds of a diagnosis; further arguments are options
measure() {
    /usr/bin/time -f '%M %U %S' -o "$dir/time" "$ACKCLOCK" diagnose "$dir/many.pcap" "$@" > "$dir/out"
    tail -n 1 "$dir/time"
}

for kind in syn request; do
    make "$kind" 1
    base=$(measure)
    make "$kind" "$number"
    text=$(measure)
    json=$(measure --json)
    echo "$kind $number $base $text $json" | awk '{
        printf "%-8s %8d connections   text %5.0f bytes each, %6.2f s   --json %5.0f bytes each, %6.2f s\n",
            $1, $2, ($6 - $3) * 1024 / $2, $7 + $8, ($9 - $3) * 1024 / $2, $10 + $11 }'
done
