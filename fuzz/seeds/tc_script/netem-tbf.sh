tc qdisc add dev eth0 root handle 1: netem delay 20ms
tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 10mbit burst 32kbit latency 50ms
