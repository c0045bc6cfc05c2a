//! How a connection begins: RFC 9000 section 7 and RFC 9001 section 4, without cryptography. What
//! TLS would say is a number of bytes in CRYPTO frames.

use crate::packet::Space;

/// Bytes of the handshake's messages.
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
    /// Of a size usual on the web: a short chain of certificates on elliptic curves. Declared
    /// here; no document fixes it.
    pub const TYPICAL: Self =
        Self { client_hello: 300, server_hello: 90, server_rest: 1_800, client_finished: 36 };
}

/// Bytes to which a datagram with an ack-eliciting Initial packet is padded (RFC 9000 14.1).
pub(crate) const MIN_INITIAL: u32 = 1_200;
/// A server sends no more than this many times what came, until the client's address is proven
/// (RFC 9000 section 8.1).
pub(crate) const AMPLIFICATION: u64 = 3;

/// How far the handshake is.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    pub(crate) flights: Option<Flights>,
    /// Keys of each space: there, and not yet discarded.
    keys: [bool; 3],
    discarded: [bool; 3],
    /// RFC 9001 section 4.1.1.
    pub(crate) complete: bool,
    /// RFC 9001 section 4.1.2.
    pub(crate) confirmed: bool,
    /// The client's address is proven to the server; at the client: the server has said so.
    pub(crate) validated: bool,
    /// UDP payload that came and left before that.
    pub(crate) came: u64,
    pub(crate) left: u64,
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
            came: 0,
            left: 0,
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

    /// Keys for a space arise.
    pub(crate) const fn install(&mut self, space: Space) {
        if !self.discarded[space.index()] {
            self.keys[space.index()] = true;
        }
    }

    /// Keys of a space are discarded (RFC 9001 section 4.9); false if they were before.
    pub(crate) const fn discard(&mut self, space: Space) -> bool {
        self.keys[space.index()] = false;
        !core::mem::replace(&mut self.discarded[space.index()], true)
    }

    /// Bytes that may leave in spite of an unproven address.
    pub(crate) fn allowance(&self, server: bool) -> u64 {
        if self.validated || !server {
            return u64::MAX;
        }
        (AMPLIFICATION * self.came).saturating_sub(self.left)
    }
}
