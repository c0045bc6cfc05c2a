//! Any bytes are unpacked or refused as damaged; what is not packed comes as it is.

use std::io::{ErrorKind, Read};

use trace::unpack::Unpacked;

/// Few bytes may unpack to very many.
const MOST: u64 = 1 << 20;

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
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
