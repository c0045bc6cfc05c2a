//! Connections at rest, in few bytes.
//!
//! A world may have many thousand connections of which most are silent most of the time. What an
//! endpoint knows then are a hundred numbers, nearly all of them small or zero, in places for large ones:
//! written one after the other in as few bytes as each needs, they take a fourth of the room. Whoever has
//! many endpoints packs those that rest, and wakes them before anything is said to them: an endpoint
//! that was packed and woken is the same as before, to the bit.

use cc::Controller;
use units::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::profile::SharedProfile;

/// An endpoint at rest takes less.
const ROOM: usize = 1_024;

/// An endpoint that was packed.
#[derive(Debug, Clone)]
pub struct Packed {
    /// Not part of the bytes: all connections of a host share it.
    profile: SharedProfile,
    bytes: Box<[u8]>,
}

impl Packed {
    /// The endpoint as it was.
    ///
    /// # Panics
    /// Never: the bytes were written by [`Endpoint::pack`].
    pub fn wake(&self) -> Endpoint {
        let mut endpoint: Endpoint =
            postcard::from_bytes(&self.bytes).expect("what an endpoint wrote can be read");
        endpoint.cfg.profile = self.profile.clone();
        endpoint.snd.buffer.share(&self.profile);
        endpoint.rcv.policy.share(&self.profile);
        endpoint
    }

    /// Bytes that it takes, beside this value itself.
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl Endpoint {
    /// Is nothing under way, due or unread, has neither side said anything for `silence`, and is no timer
    /// due for as long?
    pub fn is_at_rest(&self, now: Instant, silence: Duration) -> bool {
        let snd = &self.snd;
        let spoke = snd.last_sent.max(snd.last_heard);
        !self.wants_to_send()
            && self.signals == 0
            && snd.map.is_empty()
            && snd.buffer.used() == 0
            && self.rcv.window.unread() == 0
            && self.rcv.reassembly.is_empty()
            && !self.cc.in_recovery()
            && now.since(spoke) >= silence
            && self.next_deadline() >= now + silence
    }

    /// All that it knows, packed; `None` if it cannot be: before it is established, and where its
    /// controller was written elsewhere. It need not be at rest, but takes the least room then.
    pub fn pack(&self) -> Option<Packed> {
        if self.has_sent() {
            // What waits to be polled is not written down.
            return None;
        }
        if self.origin.is_some() {
            return None;
        }
        let bytes = match postcard::to_slice(self, &mut [0; ROOM]) {
            Ok(bytes) => Box::from(&*bytes),
            Err(_) => postcard::to_allocvec(self).ok()?.into_boxed_slice(),
        };
        Some(Packed { profile: self.cfg.profile.clone(), bytes })
    }
}
