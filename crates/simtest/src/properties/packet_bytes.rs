//! Any bytes are read or refused; what was read and can be written reads the same again.

use packet::Segment;
use packet::wire::{Link, emit, parse};
use units::Offset;

const LINKS: [Link; 5] =
    [Link::Raw, Link::Ethernet, Link::Loopback, Link::LinuxSll, Link::LinuxSll2];

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(input: (u8, &[u8])) {
    let (link, bytes) = (LINKS[usize::from(input.0) % LINKS.len()], input.1);
    let Ok(seen) = parse(bytes, link) else { return };
    assert!(seen.payload.len() <= bytes.len());
    // A payload that the capture cut off, or a length of zero, may tell of any size.
    let segment = Segment { payload: seen.payload.len() as u32, ..seen.segment };
    let mut again = Vec::new();
    if emit(&segment, &seen.between, seen.id, Offset(0), &mut again).is_ok() {
        let second = parse(&again, Link::Raw).expect("our own packet is read");
        assert_eq!((second.segment, second.between), (segment, seen.between));
    }
}
