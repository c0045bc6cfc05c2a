//! Writes the fit of a QUIC connection as a scenario file.

use scenario::document::{
    ElementTable, FlowTable, HostTable, LinkTable, PathTable, RawValue, ScenarioFile, given, named,
    tables,
};
use scenario::units_text::BufferSize;
use units::{Bytes, Duration, Rate};

use super::{IP_UDP, QuicFit};
use crate::text::{
    DEEPEST, FAST, FASTEST, LONGEST, LossPattern, MTU, ROOMY, limit_of, loss, outage, reordering,
    transfer,
};

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
        let bases = self.bases.iter().map(|basis| format!("  {}: {}", basis.what, basis.why));
        let first = "Fitted to the log of the sender. Basis of each figure:".to_owned();
        let file = ScenarioFile {
            comment: [first].into_iter().chain(bases).collect(),
            title: given("fitted to a qlog"),
            seed: given(seed),
            duration: given(limit_of(self.time)),
            host: named([("sender", self.sender(profile, cc)), ("receiver", self.receiver())]),
            path: tables([self.path(chance)]),
            flow: tables([self.flow()]),
            ..ScenarioFile::default()
        };
        file.to_string()
    }

    /// IP bytes of a full datagram.
    fn mtu(&self) -> u64 {
        (self.datagram + IP_UDP).clamp(MTU.0.max(1_228), MTU.1)
    }

    fn sender(&self, profile: &str, cc: Option<&str>) -> HostTable {
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

    fn receiver(&self) -> HostTable {
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
        let rate = self.rate.unwrap_or(FAST).clamp(1, FASTEST);
        // The measured round trip includes the transmission time of a full datagram.
        let on_link = u128::from(self.mtu()) * 8_000_000_000 / u128::from(rate);
        let on_link = u64::try_from(on_link).unwrap_or(u64::MAX);
        let one_way = (self.rtt.saturating_sub(on_link) / 2).min(LONGEST);
        let delay = || ElementTable {
            delay: given(Duration::from_nanos(one_way)),
            ..ElementTable::default()
        };
        let buffer = self.buffer.map_or(ROOMY, |bytes| Bytes(bytes.min(DEEPEST)));
        let link = LinkTable {
            rate: Rate::from_bits_per_second(rate).and_then(given),
            buffer: given(BufferSize::Size(buffer)),
            ..LinkTable::default()
        };
        let link = ElementTable { link: given(link), ..ElementTable::default() };
        // The run begins with the handshake, a round trip before the data.
        let shift = |(from, until): &(u64, u64)| (from + self.rtt, until + self.rtt);
        let outages = self.losses.outages.iter().map(|span| outage(shift(span), None));
        let losses = loss(&self.losses, chance).into_iter().chain(outages);
        let late = self.late.and_then(|(late, _)| reordering(late));
        PathTable {
            from: given("sender"),
            to: given("receiver"),
            forward: tables(losses.chain([link]).chain(late).chain([delay()])),
            return_: tables([delay()]),
            ..PathTable::default()
        }
    }

    fn flow(&self) -> FlowTable {
        transfer(self.bytes, self.writes, self.reads)
    }
}
