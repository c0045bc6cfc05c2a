//! Any bytes are unpacked or rejected as damaged; unpacked input passes unchanged.

use std::io::{ErrorKind, Read};

use trace::unpack::Unpacked;

/// Limit: few bytes may unpack to very many.
const MOST: u64 = 1 << 20;

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let unpacked = Unpacked::new(input).expect("bytes in memory are read");
    let packed = unpacked.packing().is_some();
    let mut bytes = Vec::new();
    match unpacked.take(MOST).read_to_end(&mut bytes) {
        Ok(_) if packed => {}
        Ok(_) => assert_eq!(bytes, input),
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}"),
    }
}
