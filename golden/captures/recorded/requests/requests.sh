#!/bin/sh
# Records requests and responses between two real kernels, through an emulated path, into
# NAME.client.pcap.gz and NAME.server.pcap.gz of the current directory, with 100 bytes of each packet.
#
#   requests.sh NAME SERVER_THINK_MS CLIENT_THINK_MS RESPONSE_BYTES COUNT [PIECES] [--set KEY=VALUE]...
set -e
here=$(cd "$(dirname "$0")" && pwd)
name=$1 server=$2 client=$3 size=$4 count=$5 pieces=${6:-1}
[ $# -lt 6 ] || shift
shift 5
run="python3 $here/requests.py"
ackclock wire link "$here/requests.toml" "$@" --pcap "$name.pcapng" \
    --run "server=$run server $server $size $pieces" \
    --run "client=sleep 0.5; $run client $client $count $size"
for point in 0:client 1:server; do
    tshark -r "$name.pcapng" -Y "frame.interface_id==${point%:*}" -w "$name.tmp"
    editcap -F pcap -s 100 "$name.tmp" "$name.${point#*:}.pcap"
    gzip -n9f "$name.${point#*:}.pcap"
done
rm "$name.pcapng" "$name.tmp"
