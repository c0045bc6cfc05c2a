#!/bin/bash
# Records a transfer between two network namespaces through a third one that routes, with this
# machine's kernel, into sender.pcap, receiver.pcap and router.pcap of the current directory. The
# router captures on all its interfaces, so that it has every packet twice. Needs root, iproute2,
# tcpdump and python3.
#
#   namespaces.sh nagle    40 requests in two writes of 300 bytes each, Nagle's algorithm on
#   namespaces.sh twice    200 kB in ten bursts
set -e
p=rec$$
for n in a r b; do ip netns add $p$n; ip -n $p$n link set lo up; done
trap 'for n in a r b; do ip netns del $p$n; done' EXIT
ip -n ${p}r link add ra type veth peer name a0 netns ${p}a
ip -n ${p}r link add rb type veth peer name b0 netns ${p}b
ip -n ${p}a addr add 10.9.1.1/24 dev a0; ip -n ${p}r addr add 10.9.1.2/24 dev ra
ip -n ${p}b addr add 10.9.2.1/24 dev b0; ip -n ${p}r addr add 10.9.2.2/24 dev rb
ip -n ${p}a link set a0 up; ip -n ${p}r link set ra up; ip -n ${p}r link set rb up; ip -n ${p}b link set b0 up
ip -n ${p}a route add default via 10.9.1.2; ip -n ${p}b route add default via 10.9.2.2
ip netns exec ${p}r sysctl -qw net.ipv4.ip_forward=1
ip netns exec ${p}a tcpdump -q -i a0 -s 100 -w sender.pcap tcp 2>/dev/null & 
ip netns exec ${p}b tcpdump -q -i b0 -s 100 -w receiver.pcap tcp 2>/dev/null &
ip netns exec ${p}r tcpdump -q -i any -s 100 -w router.pcap tcp 2>/dev/null &
sleep 1.5
cat > s.py <<'P'
import socket,sys
l=socket.create_server(('0.0.0.0',5001)); c,_=l.accept()
if sys.argv[1]=='nagle':
    while True:
        n=0
        while n<600:
            d=c.recv(600-n)
            if not d: sys.exit()
            n+=len(d)
        c.send(b'y'*20)
else:
    while c.recv(1<<16): pass
P
cat > c.py <<'P'
import socket,sys,time
c=socket.create_connection(('10.9.2.1',5001))
if sys.argv[1]=='nagle':
    for _ in range(40):
        c.send(b'x'*300); c.send(b'x'*300)
        n=0
        while n<20: n+=len(c.recv(20))
else:
    for _ in range(10):
        c.send(b'x'*20000); time.sleep(0.02)
c.close()
P
ip netns exec ${p}b python3 s.py $1 & sp=$!
sleep 0.5; ip netns exec ${p}a python3 c.py $1; wait $sp; sleep 1
for j in $(jobs -p); do kill $j 2>/dev/null || true; done; wait || true
