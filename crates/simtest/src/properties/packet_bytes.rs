//! Any bytes are parsed or rejected; a written copy of a parsed packet parses the same.

use packet::Segment;
use packet::wire::{Link, emit, parse};
use units::Offset;

const LINKS: [Link; 5] =
    [Link::Raw, Link::Ethernet, Link::Loopback, Link::LinuxSll, Link::LinuxSll2];

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: (u8, &[u8])) {
    let (link, bytes) = (LINKS[usize::from(input.0) % LINKS.len()], input.1);
    let Ok(seen) = parse(bytes, link) else { return };
    assert!(seen.payload.len() <= bytes.len());
    // A truncated payload, or a length of zero, may claim any size.
    let segment = Segment { payload: seen.payload.len() as u32, ..seen.segment };
    let mut repeated = Vec::new();
    if emit(&segment, &seen.endpoints, seen.id, Offset(0), &mut repeated).is_ok() {
        let second = parse(&repeated, Link::Raw).expect("our own packet is read");
        let segment = super::rewritten(segment, &second.segment);
        assert_eq!((second.segment, second.endpoints), (segment, seen.endpoints));
    }
}
