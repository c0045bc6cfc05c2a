//! The packets of a QUIC endpoint, as it sends and receives them.

use std::collections::BTreeMap;
use std::io::Write;

use logs::qlog::{Data, Frame, Packet, PacketHeader, Parameters, RecoveryParameters};
use quic::Profile;
use quic::packet::{Packet as Carried, Space};
use record::{Cause, Event as Told, Evidence, SentKind};
use serde_json::{Map, Value, json};
use units::{Duration, Instant};

use super::log::Log;

/// What is known of a QUIC connection's packets.
#[derive(Debug, Default)]
pub(super) struct Packets {
    /// What the stack said of the packet that it is about to send.
    announced: Option<SentKind>,
    /// Bytes of the stream in each packet of application data in flight.
    flying: BTreeMap<u64, (u64, u64)>,
    /// Bytes of the stream that were lost and have not gone again: first, end, and what told.
    lost: BTreeMap<u64, (u64, Evidence)>,
    /// Unit of the peer's ACK delays in microseconds.
    unit: u64,
}

/// Tells the transport parameters of both ends (RFC 9000 section 18.2), as they stand before the
/// first packet.
pub(super) fn parameters<W: Write>(log: &mut Log<W>, own: &Profile, peer: &Profile) {
    for (profile, owner) in [(own, "local"), (peer, "remote")] {
        let set = profile.parameters();
        let stream = Some(set.windows.stream);
        log.tell(
            Instant::ZERO,
            Data::ParametersSet(Parameters {
                owner: Some(owner.to_owned()),
                initial_max_data: Some(set.windows.connection),
                initial_max_stream_data_bidi_local: stream,
                initial_max_stream_data_bidi_remote: stream,
                max_ack_delay: Some(set.max_ack_delay.as_millis()),
                ack_delay_exponent: Some(set.ack_delay_exponent.into()),
                ..Parameters::default()
            }),
        );
    }
}

/// The constants of RFC 9002 as this profile has them; factors by the names of the drafts.
pub(super) fn recovery(profile: &Profile) -> (RecoveryParameters, Map<String, Value>) {
    let newreno = &profile.newreno;
    let datagram = u64::from(quic::packet::max_datagram(profile.mtu, packet::IpVersion::V4));
    let fixed = RecoveryParameters {
        reordering_threshold: Some(profile.loss.packets),
        timer_granularity: Some(profile.loss.granularity.as_millis()),
        initial_rtt: Some(profile.pto.initial_rtt),
        minimum_congestion_window: Some(u64::from(newreno.minimum_window) * datagram),
        ..RecoveryParameters::default()
    };
    let mut factors = Map::new();
    if let Some(eighths) = profile.loss.time_eighths {
        factors.insert("time_threshold".to_owned(), (eighths as f64 / 8.0).into());
    }
    let kept = f64::from(newreno.beta) / 100.0;
    factors.insert("loss_reduction_factor".to_owned(), kept.into());
    factors.insert("persistent_congestion_threshold".to_owned(), profile.loss.persistent.into());
    (fixed, factors)
}

impl Packets {
    pub(super) fn new(peer: &Profile) -> Self {
        Self { unit: 1 << peer.parameters().ack_delay_exponent, ..Self::default() }
    }

    pub(super) fn on_event<W: Write>(&mut self, log: &mut Log<W>, at: Instant, event: Told) {
        match event {
            Told::Sent { kind, .. } => self.announced = Some(kind),
            Told::PacketLost { number, space, by } => {
                let space = Space::ALL.get(usize::from(space)).copied().unwrap_or_default();
                let trigger = match by {
                    Evidence::Order => "reordering_threshold",
                    Evidence::Time => "time_threshold",
                };
                if space == Space::Application
                    && let Some((first, end)) = self.flying.remove(&number)
                {
                    self.lost.insert(first, (end, by));
                }
                let header = header(space, number);
                log.tell(at, Data::PacketLost { header, trigger: Some(trigger.to_owned()) });
            }
            _ => {}
        }
    }

    /// A packet on its way out.
    pub(super) fn sent<W: Write>(&mut self, log: &mut Log<W>, at: Instant, carried: &Carried) {
        let mut packet = self.packet(carried);
        let trigger = match self.announced.take() {
            Some(SentKind::Probe | SentKind::Again(Cause::LossProbe)) => Some("pto_probe"),
            Some(SentKind::Again(_)) => Some(match self.reason(carried) {
                Some(Evidence::Time) => "retransmit_timeout",
                _ => "retransmit_reordered",
            }),
            _ => None,
        };
        packet.trigger = trigger.map(str::to_owned);
        if carried.space == Space::Application
            && let Some(chunk) = &carried.stream
        {
            self.flying.insert(carried.number, (chunk.offset, chunk.end()));
        }
        log.tell(at, Data::PacketSent(packet));
    }

    /// What told that the bytes which go again had been lost.
    fn reason(&mut self, carried: &Carried) -> Option<Evidence> {
        let chunk = carried.stream.as_ref()?;
        let (&first, &(end, by)) = self.lost.range(..=chunk.offset).next_back()?;
        if chunk.offset >= end {
            return None;
        }
        self.lost.remove(&first);
        if chunk.end() < end {
            self.lost.insert(chunk.end(), (end, by));
        }
        Some(by)
    }

    /// A packet that came in.
    pub(super) fn arrived<W: Write>(&mut self, log: &mut Log<W>, at: Instant, carried: &Carried) {
        if carried.space == Space::Application {
            for &(first, last) in &carried.ack.ranges {
                self.flying.retain(|number, _| !(first..=last).contains(number));
            }
        }
        let packet = self.packet(carried);
        log.tell(at, Data::PacketReceived(packet));
    }

    fn packet(&self, carried: &Carried) -> Packet {
        Packet {
            header: header(carried.space, carried.number),
            length: Some(carried.size.into()),
            frames: self.frames(carried),
            trigger: None,
        }
    }

    fn frames(&self, carried: &Carried) -> Vec<Frame> {
        let mut frames = Vec::new();
        if !carried.ack.ranges.is_empty() {
            let micros = carried.ack.delay.saturating_mul(self.unit);
            let delay = Some(Duration::from_micros(micros));
            frames.push(Frame::Ack { ranges: carried.ack.ranges.clone(), delay });
        }
        if let Some(chunk) = &carried.crypto {
            frames.push(Frame::Crypto { offset: chunk.offset, length: chunk.len.into() });
        }
        if let Some(asked) = &carried.ack_frequency {
            // draft-ietf-quic-ack-frequency; qlog has no frame for it.
            frames.push(other(json!({
                "frame_type": "ack_frequency",
                "ack_eliciting_threshold": asked.threshold,
                "request_max_ack_delay": asked.max_delay_us,
                "reordering_threshold": asked.reordering,
            })));
        }
        for (there, name) in [
            (carried.handshake_done, "handshake_done"),
            (carried.ping, "ping"),
            (carried.close, "connection_close"),
        ] {
            if there {
                frames.push(other(json!({ "frame_type": name })));
            }
        }
        frames.extend(carried.max_data.map(|maximum| Frame::MaxData { maximum }));
        let stream_id = 0;
        frames.extend(
            carried.max_stream_data.map(|maximum| Frame::MaxStreamData { stream_id, maximum }),
        );
        if let Some(chunk) = &carried.stream {
            let (offset, length, fin) = (chunk.offset, chunk.len.into(), chunk.fin);
            frames.push(Frame::Stream { stream_id, offset, length, fin });
        }
        frames
    }
}

fn other(frame: Value) -> Frame {
    Frame::Other(match frame {
        Value::Object(map) => map,
        _ => Map::new(),
    })
}

fn header(space: Space, number: u64) -> PacketHeader {
    let packet_type = match space {
        Space::Initial => "initial",
        Space::Handshake => "handshake",
        Space::Application => "1RTT",
    };
    PacketHeader { packet_type: packet_type.to_owned(), packet_number: Some(number) }
}
