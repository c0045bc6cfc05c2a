# The workloads W1, W2, W3 and W5 (crates/simtest/src/workloads.rs) in ns-2: `ns ns2.tcl W1 0.1`.
#
# The number is the part of the usual duration, of W5 the number of transfers, which follow each
# other in one simulation. Prints one line, its fields parted by tabs: data segments, segments sent
# again, bytes delivered, virtual seconds, nanoseconds of processor time from the first event to the
# last. W4 is left out: routes between 20,002 nodes do not fit into any memory.

set name [lindex $argv 0]
set part [lindex $argv 1]

remove-all-packet-headers
add-packet-header IP TCP Flags
# 1448 bytes of payload and 52 of headers with timestamps; what a Linux sender keeps under way.
Agent/TCP set packetSize_ 1448
Agent/TCP set useHeaders_ true
Agent/TCP set tcpip_base_hdr_size_ 42
Agent/TCP set ts_option_size_ 10
Agent/TCP set timestamps_ true
Agent/TCP set window_ 1820
Agent/TCP set windowInit_ 10
Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.001
Agent/TCPSink set packetSize_ 52
Agent/TCPSink/Sack1/DelAck set interval_ 40ms

set ns [new Simulator]
set tcps {}

# Nanoseconds of processor time that this process has had (Linux).
proc cpu {} {
    set file [open /proc/self/schedstat]
    set nanos [lindex [read $file] 0]
    close $file
    return $nanos
}

proc line {from to rate delay room} {
    global ns
    $ns simplex-link $from $to $rate $delay DropTail
    $ns queue-limit $from $to $room
}

# Bulk data; of no size: without end.
proc flow {from to start bytes} {
    global ns tcps
    set tcp [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1/DelAck]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    lappend tcps $tcp
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    if {$bytes > 0} { $ns at $start "$ftp send $bytes" } else { $ns at $start "$ftp start" }
}

proc pair {rate delay room} {
    global ns
    set a [$ns node]
    set b [$ns node]
    line $a $b $rate $delay $room
    line $b $a 100Gb $delay 100000
    return [list $a $b]
}

switch $name {
    W1 {
        set seconds [expr 60.0 * $part]
        lassign [pair 1Gb 20ms 3333] a b
        flow $a $b 0.0 0
    }
    W2 {
        set seconds [expr 10.0 * $part]
        lassign [pair 1Gb 0.075ms 100] a b
        set errors [new ErrorModel]
        $errors unit pkt
        $errors set rate_ 0.01
        $errors ranvar [new RandomVariable/Uniform]
        $errors drop-target [new Agent/Null]
        $ns lossmodel $errors $a $b
        flow $a $b 0.0 0
    }
    W3 {
        set seconds [expr 10.0 * $part]
        set left [$ns node]
        set right [$ns node]
        line $left $right 1Gb 0ms 5000
        line $right $left 1Gb 0ms 5000
        for {set n 0} {$n < 100} {incr n} {
            set a [$ns node]
            set b [$ns node]
            line $a $left 1Gb 0ms 1000
            line $left $a 1Gb 20ms 1000
            line $right $b 1Gb 20ms 1000
            line $b $right 1Gb 0ms 1000
            flow $a $b [expr $n * 10e-6] 0
        }
    }
    W5 {
        set seconds [expr 5.0 * $part]
        lassign [pair 100Mb 10ms 166] a b
        for {set n 0} {$n < $part} {incr n} { flow $a $b [expr 5.0 * $n] 1000000 }
    }
    default {
        puts stderr "$name is not W1, W2, W3 or W5"
        exit 2
    }
}

proc finish {} {
    global began tcps seconds
    set nanos [expr [cpu] - $began]
    set segments 0
    set resent 0
    set acked 0
    foreach tcp $tcps {
        incr segments [$tcp set ndatapack_]
        incr resent [$tcp set nrexmitpack_]
        incr acked [$tcp set ack_]
    }
    puts "$segments\t$resent\t[expr $acked * 1448]\t$seconds\t$nanos"
    exit 0
}

$ns at 0.0 "set began \[cpu\]"
$ns at $seconds finish
$ns run
