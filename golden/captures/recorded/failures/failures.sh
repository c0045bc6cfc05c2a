#!/bin/bash
# Records connections that fail between two network namespaces through a third one that routes, with
# this machine's kernel, into NAME.client.pcap and NAME.server.pcap of the current directory. Either
# link has a delay of 5 ms each way, but for time-wait. Needs root, iproute2, tcpdump and python3.
#
#   failures.sh NAME   one of the cases of `failures.py`
set -e
here=$(cd "$(dirname "$0")" && pwd)
p=fail$$
for n in a d r e b; do ip netns add $p$n; ip -n $p$n link set lo up; done
trap 'for n in a d r e b; do ip netns del $p$n; done' EXIT
link() { ip -n $p${1%:*} link add ${1#*:} type veth peer name ${2#*:} netns $p${2%:*}; }
if [ $1 = time-wait ]; then
    link a:a0 r:ra; link r:rb b:b0
else
    link a:a0 d:da; link d:dr r:ra; link r:rb e:er; link e:eb b:b0
fi
up() { ip -n $p${1%:*} link set ${1#*:} up; }
ip -n ${p}a addr add 10.9.1.1/24 dev a0; ip -n ${p}r addr add 10.9.1.2/24 dev ra
ip -n ${p}b addr add 10.9.2.1/24 dev b0; ip -n ${p}r addr add 10.9.2.2/24 dev rb
for l in a:a0 r:ra r:rb b:b0; do up $l; done
ip -n ${p}a route add default via 10.9.1.2; ip -n ${p}b route add default via 10.9.2.2
ip netns exec ${p}r sysctl -qw net.ipv4.ip_forward=1
wires=
if [ $1 != time-wait ]; then
    for l in d:da d:dr e:er e:eb; do ip netns exec $p${l%:*} sysctl -qw net.ipv6.conf.${l#*:}.disable_ipv6=1; up $l; done
    for l in a:a0 r:ra r:rb b:b0; do ip netns exec $p${l%:*} python3 $here/failures.py offload ${l#*:}; done
    ip netns exec ${p}d python3 $here/failures.py delay da dr & wires="$wires $!"
    ip netns exec ${p}e python3 $here/failures.py delay er eb & wires="$wires $!"
fi
case $1 in
unanswered) ip -n ${p}r route add blackhole 10.9.3.0/24 ;;
unreachable) ip -n ${p}r route add unreachable 10.9.3.0/24 ;;
prohibited) ip -n ${p}r route add prohibit 10.9.3.0/24 ;;
too-big) ip -n ${p}r link set rb mtu 1300 ;;
time-wait) for n in a b; do ip netns exec $p$n sysctl -qw net.ipv4.tcp_timestamps=0; done ;;
esac
filter='tcp or icmp'
ip netns exec ${p}a tcpdump -q -i a0 -s 100 -w $1.client.pcap $filter 2>/dev/null & ca=$!
ip netns exec ${p}b tcpdump -q -i b0 -s 100 -w $1.server.pcap $filter 2>/dev/null & cb=$!
sleep 1.5
ip netns exec ${p}b python3 $here/failures.py $1 server & sp=$!
ip netns exec ${p}r python3 $here/failures.py $1 router & rp=$!
sleep 0.7
ip netns exec ${p}a python3 $here/failures.py $1 client || true
sleep 1
kill $sp $rp 2>/dev/null || true
wait $sp $rp 2>/dev/null || true
kill $ca $cb $wires; wait 2>/dev/null || true
