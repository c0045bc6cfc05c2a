//! The handshake: RFC 9000 section 7 and RFC 9001 section 4, without cryptography. TLS messages are
//! byte counts in CRYPTO frames.

use crate::packet::Space;

/// Sizes of the handshake messages in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flights {
    /// ClientHello with the transport parameters, in Initial packets.
    pub client_hello: u32,
    /// ServerHello, in Initial packets.
    pub server_hello: u32,
    /// Encrypted extensions, certificates, Finished, in Handshake packets.
    pub server_rest: u32,
    /// The client's Finished, in Handshake packets.
    pub client_finished: u32,
}

impl Flights {
    /// Sizes typical of the web: a short chain of elliptic-curve certificates. Declared here; no
    /// document fixes them.
    pub const TYPICAL: Self =
        Self { client_hello: 300, server_hello: 90, server_rest: 1_800, client_finished: 36 };
}

/// Bytes to which a datagram with an ack-eliciting Initial packet is padded (RFC 9000 14.1).
pub(crate) const MIN_INITIAL: u32 = 1_200;
/// Anti-amplification limit: until the client's address is validated, a server sends at most this
/// multiple of the bytes received (RFC 9000 section 8.1).
pub(crate) const AMPLIFICATION: u64 = 3;

/// The state of the handshake.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    pub(crate) flights: Option<Flights>,
    /// Keys of each space: installed and not yet discarded.
    keys: [bool; 3],
    discarded: [bool; 3],
    /// RFC 9001 section 4.1.1.
    pub(crate) complete: bool,
    /// RFC 9001 section 4.1.2.
    pub(crate) confirmed: bool,
    /// At the server: the client's address is validated. At the client: the server has confirmed
    /// this.
    pub(crate) validated: bool,
    /// UDP payload bytes received and sent before validation.
    pub(crate) bytes_received: u64,
    pub(crate) bytes_sent: u64,
    /// HANDSHAKE_DONE is to be sent.
    pub(crate) done_due: bool,
}

impl Handshake {
    pub(crate) const fn new(flights: Option<Flights>) -> Self {
        let none = flights.is_none();
        Self {
            flights,
            keys: [!none, false, none],
            discarded: [none, none, false],
            complete: none,
            confirmed: none,
            validated: none,
            bytes_received: 0,
            bytes_sent: 0,
            done_due: false,
        }
    }

    /// Can packets of this space be sent and read?
    pub(crate) const fn has_keys(&self, space: Space) -> bool {
        self.keys[space.index()]
    }

    pub(crate) const fn is_discarded(&self, space: Space) -> bool {
        self.discarded[space.index()]
    }

    /// Installs the keys of a space.
    pub(crate) const fn install(&mut self, space: Space) {
        if !self.discarded[space.index()] {
            self.keys[space.index()] = true;
        }
    }

    /// Discards the keys of a space (RFC 9001 section 4.9); false if they already were.
    pub(crate) const fn discard(&mut self, space: Space) -> bool {
        self.keys[space.index()] = false;
        !core::mem::replace(&mut self.discarded[space.index()], true)
    }

    /// Bytes that may be sent before the address is validated.
    pub(crate) fn allowance(&self, server: bool) -> u64 {
        if self.validated || !server {
            return u64::MAX;
        }
        (AMPLIFICATION * self.bytes_received).saturating_sub(self.bytes_sent)
    }
}
