//! Writes the fit of a QUIC connection as a scenario file.

use scenario::document::{HostTable, PathTable, RawValue, given, named};
use units::{Bytes, Duration};

use super::{IP_UDP, QuicFit};
use crate::text::{
    FitDocument, FittedPath, LossPattern, MTU, outage, receive_window_knobs, send_buffer_knobs,
    transfer,
};
use tcp::profile::TcpProfile;

/// A flow control window that never limits.
const UNLIMITED: u64 = 1 << 40;
/// Send buffer of the profiles.
const SEND_BUFFER: u64 = 16 << 20;

impl QuicFit {
    /// Returns the scenario with a sender of `profile` and, if given, congestion control `cc`.
    pub fn scenario(
        &self,
        profile: &str,
        cc: Option<&str>,
        chance: LossPattern,
        seed: u64,
    ) -> String {
        let document = FitDocument {
            shared: None,
            beside: Vec::new(),
            source: "the log of the sender",
            title: "fitted to a qlog",
            bases: &self.bases,
            time: self.time,
            sender: self.sender(profile, cc),
            receiver: self.receiver(profile),
            path: self.path(chance),
            flow: transfer(self.bytes, self.writes, self.reads),
        };
        document.text(seed)
    }

    /// IP bytes of a full datagram.
    fn mtu(&self) -> u64 {
        let headers = if self.tcp.is_some() { 0 } else { IP_UDP };
        (self.datagram + headers).clamp(MTU.0.max(1_228), MTU.1)
    }

    fn sender(&self, profile: &str, cc: Option<&str>) -> HostTable {
        if is_tcp(profile) {
            return HostTable {
                profile: given(profile),
                cc: cc.and_then(given),
                mtu: given(Bytes(self.mtu())),
                knobs: send_buffer_knobs(profile, self.flight),
                ..HostTable::default()
            };
        }
        let flight = self.flight.min(UNLIMITED);
        let room = (flight * 2 > SEND_BUFFER).then(|| RawValue::from(Bytes(flight * 4)));
        let knobs = room.and_then(|room| named([("sendQueueLimit", room)]));
        HostTable {
            profile: given(profile),
            cc: cc.and_then(given),
            mtu: given(Bytes(self.mtu())),
            knobs,
            ..HostTable::default()
        }
    }

    /// Returns the receiver, which has the transport of the sender.
    fn receiver(&self, sender: &str) -> HostTable {
        if is_tcp(sender) {
            let profile = self.tcp.as_deref().unwrap_or(sender);
            let window = self.windows_of_peer[0].filter(|_| self.flow_limited);
            return HostTable {
                profile: given(profile),
                mtu: given(Bytes(self.mtu())),
                knobs: window.and_then(|window| receive_window_knobs(profile, window)),
                ..HostTable::default()
            };
        }
        let window = |index: usize| {
            let window = self.windows_of_peer[index].unwrap_or(UNLIMITED);
            RawValue::from(Bytes(window.clamp(self.datagram, UNLIMITED)))
        };
        let delay =
            Duration::from_nanos(self.max_ack_delay.unwrap_or(25_000_000).min(16_383_000_000));
        let knobs = named([
            ("numReceivedAckElicitingsBeforeAck", RawValue::from(self.per_ack.min(1_000_000))),
            ("max_ack_delay", RawValue::from(Duration::from_micros(delay.as_micros()))),
            ("initial_max_data", window(0)),
            ("initial_max_stream_data", window(1)),
        ]);
        HostTable {
            profile: given(self.receiver),
            mtu: given(Bytes(self.mtu())),
            knobs,
            ..HostTable::default()
        }
    }

    fn path(&self, chance: LossPattern) -> PathTable {
        // The run begins with the handshake, a round trip before the data.
        let shift = |(from, until): &(u64, u64)| (from + self.rtt, until + self.rtt);
        let path = FittedPath {
            rtt: self.rtt,
            rtt_packet: self.mtu(),
            rate: self.rate,
            buffer: self.buffer,
            losses: &self.losses,
            lost_data: None,
            outages: self.losses.outages.iter().map(|span| outage(shift(span), None)).collect(),
            late: self.late.map(|(late, _)| late),
            policer: None,
            marks: None,
        };
        path.table(chance)
    }
}

fn is_tcp(profile: &str) -> bool {
    TcpProfile::named(profile).is_some()
}
