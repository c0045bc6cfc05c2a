//! A middlebox that removes options from SYNs.

use machine::{Element, PacketId, PacketVerdict, PacketView};
use record::SynOffers;
use units::Instant;

/// Removes what SYNs and SYN-ACKs offer, so that the host that receives them takes the other for
/// one that does not offer it. All other packets pass unchanged.
#[derive(Debug, Clone, Copy)]
pub struct Strip(SynOffers);

impl Strip {
    /// Creates an element that removes these.
    pub const fn new(offers: SynOffers) -> Self {
        Self(offers)
    }
}

impl Element for Strip {
    fn accept(&mut self, _: Instant, _: PacketId, view: &PacketView) -> PacketVerdict {
        if view.syn { PacketVerdict::Stripped(self.0) } else { PacketVerdict::Forwarded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, handshake};

    #[test]
    fn only_syns_are_changed() {
        let mut strip = Strip::new(SynOffers::SACK);
        let mut verdict = |view| strip.accept(Instant::ZERO, PacketId(1), &view);
        assert_eq!(verdict(data(1_500)), PacketVerdict::Forwarded);
        let syn = PacketView { syn: true, ..handshake() };
        assert_eq!(verdict(syn), PacketVerdict::Stripped(SynOffers::SACK));
    }
}
