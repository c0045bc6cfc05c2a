tc qdisc add dev s1-eth1 root handle 5:0 htb default 1
tc class add dev s1-eth1 parent 5:0 classid 5:1 htb rate 10.000000Mbit burst 15k
tc qdisc add dev s1-eth1 parent 5:1 handle 10: netem delay 5ms limit 1000
