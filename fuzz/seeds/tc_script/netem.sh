tc qdisc add dev eth0 root netem delay 100ms 10ms 25% distribution normal reorder 25% 50% gap 5 loss state 1% 10% rate 10mbit 20 48 5 limit 100 slot 1ms 2ms
