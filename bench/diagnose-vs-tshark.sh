#!/bin/sh
# How fast `ackclock diagnose` is beside `tshark -q -z conv,tcp` on the same capture of 1 GB, in
# time and memory: once with whole packets, once with 96 bytes of each (`tcpdump -s 96`), which are
# ten times as many. Needs tshark, editcap, mergecap and GNU time. Captures are made by the
# simulator, and deleted.
#
#   bench/diagnose-vs-tshark.sh [DIRECTORY FOR 3 GB, default /tmp]
#
# ACKCLOCK names the program; by default it is built here.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d "${1:-/tmp}/ackclock-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT INT TERM
if [ -z "${ACKCLOCK:-}" ]; then
    cargo build --profile full --quiet -p ackclock
    ACKCLOCK=${CARGO_TARGET_DIR:-target}/full/ackclock
fi

cat > "$dir/transfer.toml" <<'TOML'
title = "A gigabyte in a busy network"
seed = 1
duration = "9s"

[host.sender]
profile = "linux-6.18"
cc = "cubic"

[host.sink]
profile = "linux-6.18"
cc = "cubic"

[[path]]
from = "sender"
to = "sink"
forward = [
    { link = { rate = "1Gbit/s", buffer = "2MB" } },
    { loss = "0.01%", only = "data" },
    { delay = "500us" },
]
return = [{ delay = "500us" }]

[[flow]]
name = "upload"
from = "sender"
to = "sink"
bulk = "unlimited"
TOML

# Parts with another seed are other connections between the same ends.
run() { "$ACKCLOCK" run "$dir/transfer.toml" --seed "$1" --pcap "$dir/part.pcapng" > /dev/null; }

# time and memory of a command: user+system seconds, elapsed seconds, MB
measure() {
    /usr/bin/time -f '%U %S %e %M' -o "$dir/time" "$@" > "$dir/out" 2> "$dir/err" || {
        # 1 tells of findings.
        [ $? -eq 1 ] || { cat "$dir/err" >&2; exit 2; }
    }
    tail -n 1 "$dir/time" | awk '{ printf "%.2f %.2f %.0f", $1 + $2, $3, $4 / 1024 }'
}

compare() {
    frames=$(capinfos -Mc "$2" | awk '/Number of packets/ { print $NF }')
    bytes=$(wc -c < "$2")
    # The file stays in the page cache for both.
    cat "$2" > /dev/null
    ours=$(measure "$ACKCLOCK" diagnose "$2")
    theirs=$(measure tshark -n -r "$2" -q -z conv,tcp)
    echo "$1 $frames $bytes $ours $theirs" | awk '{
        printf "%-14s %9d packets %5d MB   ackclock %7.2f s (cpu %7.2f) %4d MB   tshark %7.2f s (cpu %7.2f) %4d MB   %5.1f times as fast (cpu %5.1f)\n",
            $1, $2, $3 / 1e6, $5, $4, $6, $8, $7, $9, $8 / $5, $7 / $4 }'
}

tshark --version | head -n 1
run 1
compare whole "$dir/part.pcapng"
seed=1
parts=
size=0
while [ "$size" -lt 1000000000 ]; do
    editcap -s 96 -t $((30 * seed)) "$dir/part.pcapng" "$dir/$seed.pcapng"
    parts="$parts $dir/$seed.pcapng"
    size=$((size + $(wc -c < "$dir/$seed.pcapng")))
    seed=$((seed + 1))
    run "$seed"
done
rm "$dir/part.pcapng"
# Split on purpose: names without blanks.
# shellcheck disable=SC2086
mergecap -a -w "$dir/cut.pcapng" $parts
rm $parts
compare snaplen-96 "$dir/cut.pcapng"
