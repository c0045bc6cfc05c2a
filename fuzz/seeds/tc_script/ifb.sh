#!/bin/bash
set -e
DEV=${1:-eth0} RATE="10mbit"
sudo modprobe ifb
ip link add ifb0 type ifb
ip link set dev ifb0 up mtu 1400
tc qdisc del dev $DEV root 2>/dev/null || true
tc qdisc del dev $DEV ingress > /dev/null 2>&1
tc qdisc add dev $DEV handle ffff: ingress
tc filter add dev $DEV parent ffff: protocol ip u32 match u32 0 0 \
   action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: htb default 10
tc class add dev ifb0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev ifb0 parent 1:1 classid 1:10 htb rate 1mbit ceil $RATE prio 3
tc qdisc add dev ifb0 parent 1:10 fq_codel limit 600 noecn
tc -s qdisc show dev ifb0
