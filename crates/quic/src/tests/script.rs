//! The exact packets of a transfer and their send times.

use units::{Duration, Instant};

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::profile::{INET_2025_02, QuicProfile};

fn inet() -> QuicProfile {
    QuicProfile { mtu: 1_280, ..INET_2025_02 }
}

/// One line per packet: send time in microseconds and contents.
fn packet_lines(pair: &QuicPair, side: usize) -> Vec<String> {
    let of_side = pair.sent.iter().filter(|sent| sent.from == side);
    of_side
        .map(|sent| {
            let packet = &sent.packet;
            let mut line = format!("{} #{}", sent.at.as_nanos() / 1_000, packet.number);
            if let Some(chunk) = packet.stream {
                line += &format!(" stream {}+{}", chunk.offset, chunk.len);
                line += if chunk.fin { " fin" } else { "" };
            }
            for (first, last) in &packet.ack.ranges {
                line += &format!(" ack {first}-{last}");
            }
            line += &format!(" ({})", packet.size);
            line + if sent.lost { " lost" } else { "" }
        })
        .collect()
}

#[test]
fn a_loss_in_the_middle_of_a_flight() {
    let mut pair = QuicPair::new(inet(), inet(), Duration::from_millis(5))
        .losing(|side, packet| side == CLIENT && packet.number == 2);
    pair.open();
    pair.act(CLIENT, |client, cx| {
        client.write(cx, 7_000);
        client.close();
    });
    pair.run_until(Instant::ZERO + Duration::from_millis(100));
    // Offsets below 64 take one byte, below 16,384 two: 1,252 - 13 - 1 - 1 - 1 - 2 = 1,234.
    assert_eq!(
        packet_lines(&pair, CLIENT),
        [
            "0 #0 stream 0+1234 (1252)",
            "0 #1 stream 1234+1233 (1252)",
            "0 #2 stream 2467+1233 (1252) lost",
            "0 #3 stream 3700+1233 (1252)",
            "0 #4 stream 4933+1233 (1252)",
            "0 #5 stream 6166+834 fin (853)",
            "10000 #6 stream 2467+1233 (1252)",
        ]
    );
    assert_eq!(
        packet_lines(&pair, SERVER),
        [
            // Packet 0 at once, the gap at once, then every second packet; the last one waits 25
            // ms. Packet 6 does not count as filling the gap: it follows in order.
            "5000 #0 ack 0-0 (18)",
            "5000 #1 ack 3-3 ack 0-1 (20)",
            "5000 #2 ack 3-5 ack 0-1 (20)",
            "40000 #3 ack 3-6 ack 0-1 (21)",
        ]
    );
}
