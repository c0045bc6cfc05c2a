//! Compact encoding of idle connections.
//!
//! A world may have many thousand connections, most of them idle most of the time. The state of an
//! idle endpoint is about a hundred numbers, nearly all small or zero; a variable-length encoding
//! needs a fourth of the memory. A caller with many endpoints packs the idle ones and unpacks them
//! before any call. Packing and unpacking restores an endpoint bit for bit.

use cc::Controller;
use units::{Duration, Instant};

use crate::endpoint::TcpEndpoint;
use crate::profile::SharedProfile;

/// Upper bound of the encoded size of an idle endpoint.
const ROOM: usize = 1_024;

/// An encoded endpoint.
#[derive(Debug, Clone)]
pub struct PackedEndpoint {
    /// Not encoded: all connections of a host share it.
    profile: SharedProfile,
    bytes: Box<[u8]>,
}

impl PackedEndpoint {
    /// Decodes the endpoint.
    ///
    /// # Panics
    /// Never: the bytes were written by [`TcpEndpoint::pack`].
    pub fn wake(&self) -> TcpEndpoint {
        let mut endpoint: TcpEndpoint =
            postcard::from_bytes(&self.bytes).expect("an encoded endpoint can be decoded");
        endpoint.conn.cfg.profile = self.profile.clone();
        endpoint.conn.clock.set_tick();
        endpoint.snd.settle_flight();
        endpoint.snd.buffer.share(&self.profile);
        endpoint.rcv.policy.share(&self.profile);
        endpoint
    }

    /// Size of the encoded bytes.
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl TcpEndpoint {
    /// Is nothing in flight, pending or unread, has neither side sent anything for `silence`, and
    /// does no timer expire for as long?
    pub fn is_idle(&self, now: Instant, silence: Duration) -> bool {
        let snd = &self.snd;
        let spoke = snd.last.sent.max(snd.last.received);
        !self.wants_to_send()
            && snd.call.signals == 0
            && snd.scoreboard.is_empty()
            && snd.buffer.used() == 0
            && self.rcv.window.unread() == 0
            && self.rcv.reassembly.is_empty()
            && !self.snd.cc.in_recovery()
            && now.since(spoke) >= silence
            && self.next_deadline() >= now + silence
    }

    /// Encodes the endpoint; `None` before it is established, with segments in the outbox, and with
    /// an external controller. It need not be idle, but is smallest then.
    pub fn pack(&self) -> Option<PackedEndpoint> {
        if self.has_outbox() {
            // The outbox is not encoded.
            return None;
        }
        if self.conn.handshake_cfg.is_some() {
            return None;
        }
        let bytes = match postcard::to_slice(self, &mut [0; ROOM]) {
            Ok(bytes) => Box::from(&*bytes),
            Err(_) => postcard::to_allocvec(self).ok()?.into_boxed_slice(),
        };
        Some(PackedEndpoint { profile: self.conn.cfg.profile.clone(), bytes })
    }
}
