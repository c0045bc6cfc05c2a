//! The ideal sender that `utilisation` compares with: its window doubles each round trip from ten
//! segments until the path is full, and it loses nothing.

/// The initial window of RFC 6928, in payload bytes of an Ethernet path.
const INITIAL_WINDOW: f64 = 14_480.0;

/// Seconds until `bytes` arrive from `flows` ideal senders that start together over a path of
/// `capacity` bytes a second and round trip `rtt`, the handshake included.
pub(crate) fn ideal_time(bytes: f64, flows: f64, capacity: f64, rtt: f64) -> f64 {
    // SYN and SYN-ACK take a round trip, the first data half of one.
    let mut time = rtt * 1.5;
    let mut left = bytes;
    let mut window = INITIAL_WINDOW * flows.max(1.0);
    while left > window && window < capacity * rtt {
        left -= window;
        time += rtt;
        window *= 2.0;
    }
    time + left / capacity
}
