//! Writes the fit of a QUIC connection as a scenario file.

use scenario::document::{
    ElementTable, ExchangeStepTable, ExchangeTable, FlowTable, HostTable, LinkTable, Located,
    PathTable, RawValue, given, named, tables,
};
use scenario::units_text::BufferSize;
use units::{Bytes, Duration, Rate};

use super::{ACK, IP_UDP, QuicFit};
use crate::text::{
    FitDocument, FittedPath, LONGEST, LossPattern, MTU, outage, receive_window_knobs,
    send_buffer_knobs, transfer,
};
use crate::{Message, WayBackFit};
use tcp::profile::TcpProfile;

/// Limits of scenario files: a rate in bit/s, a queue in bytes.
const FASTEST: u64 = 100_000_000_000_000;
const DEEPEST: u64 = 1_000_000_000_000_000_000;
/// IP bytes of the first packet of a client, which is padded, and of the first flight of a server with a short chain of
/// certificates: those of the model.
const INITIAL: u64 = 1_228;
const SERVER_FLIGHT: u64 = 3_177;
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
            flow: self.flow(),
        };
        document.text(seed)
    }

    /// The flow of the data, or the exchange of which they are a part.
    fn flow(&self) -> FlowTable {
        let Some(conversation) = &self.conversation else {
            return transfer(self.bytes, self.writes, self.reads);
        };
        let step = |one: &Message| {
            let bytes = given(Bytes(one.bytes.max(1)));
            let (client, server) = if one.by_client { (bytes, None) } else { (None, bytes) };
            let after = Duration::from_micros(one.after.min(LONGEST) / 1_000);
            let window = conversation.window.filter(|_| one.by_client == self.is_client);
            ExchangeStepTable {
                client,
                server,
                after: (one.after >= 1_000).then(|| given(after)).flatten(),
                window: window.and_then(|window| given(Bytes(window.max(1)))),
            }
        };
        let exchange = ExchangeTable {
            steps: tables(conversation.messages.iter().map(step)),
            ..ExchangeTable::default()
        };
        let (from, to) =
            if self.is_client { ("sender", "receiver") } else { ("receiver", "sender") };
        FlowTable {
            name: given("transfer"),
            from: given(from),
            to: given(to),
            exchange: given(exchange),
            ..FlowTable::default()
        }
    }

    /// Time of the first data in the run, in ns: after the handshake, and the request that they answer.
    fn begin_of_data(&self) -> u64 {
        let on_link = |bytes: u64, rate: Option<u64>| {
            rate.map_or(0, |rate| bytes.saturating_mul(8_000_000_000) / rate.max(1))
        };
        let back = self.way_back.map(|back| back.rate);
        let both = on_link(self.mtu(), self.rate).saturating_add(on_link(ACK, back));
        let one_way = self.rtt.saturating_sub(both) / 2;
        match &self.conversation {
            Some(found) if !self.is_client => {
                let first = found.messages.iter().find(|one| !one.by_client);
                let flights = on_link(INITIAL, back) + on_link(SERVER_FLIGHT, self.rate);
                3 * one_way + flights + first.map_or(0, |one| one.after)
            }
            _ => 2 * one_way + on_link(INITIAL, self.rate) + on_link(SERVER_FLIGHT, back),
        }
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
        let begin = self.begin_of_data();
        let shift = |(from, until): &(u64, u64)| (from + begin, until + begin);
        // The shortest round trip has an ACK's time on its link.
        let of_ack = self.way_back.map_or(0, |back| ACK * 8_000_000_000 / back.rate.max(1));
        let path = FittedPath {
            rtt: self.rtt.saturating_sub(of_ack.min(self.rtt / 2)),
            rtt_packet: self.mtu(),
            rate: self.rate,
            buffer: self.buffer,
            losses: &self.losses,
            lost_data: None,
            outages: self.losses.outages.iter().map(|span| outage(shift(span), None)).collect(),
            late: self.late.map(|(late, _)| late),
            policer: self.policer,
            marks: None,
        };
        let mut path = path.table(chance);
        if let Some(WayBackFit { rate, buffer, .. }) = self.way_back {
            let link = LinkTable {
                rate: Rate::from_bits_per_second(rate.clamp(1, FASTEST)).and_then(given),
                buffer: given(BufferSize::Size(Bytes(buffer.min(DEEPEST)))),
                ..LinkTable::default()
            };
            let link = ElementTable { link: given(link), ..ElementTable::default() };
            let rest = path.return_.take().map(|rest| rest.value).unwrap_or_default();
            path.return_ = given([vec![Located::from(link)], rest].concat());
        }
        path
    }
}

fn is_tcp(profile: &str) -> bool {
    TcpProfile::named(profile).is_some()
}
