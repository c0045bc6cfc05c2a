//! Packet events of a QUIC endpoint.

use std::collections::BTreeMap;
use std::io::Write;

use logs::qlog::{
    PacketHeader, QlogData, QlogFrame, QlogPacket, QlogParameters, RecoveryParameters,
};
use quic::QuicProfile;
use quic::packet::{QuicPacket as Carried, Space};
use record::{Cause, Event as RunEvent, LossTrigger, SentKind};
use serde_json::{Map, Value, json};
use units::{Duration, Instant};

use super::log::QlogLog;

/// The packets of a QUIC connection.
#[derive(Debug, Default)]
pub(super) struct QuicPacketLog {
    /// The kind of the packet that is about to be sent.
    announced: Option<SentKind>,
    /// Stream range of each 1-RTT packet in flight.
    in_flight: BTreeMap<u64, (u64, u64)>,
    /// Stream ranges that were lost and not yet retransmitted: start, end, and the trigger.
    lost: BTreeMap<u64, (u64, LossTrigger)>,
    /// Unit of the peer's ACK delays in microseconds.
    unit: u64,
}

/// Writes the transport parameters of both endpoints (RFC 9000 section 18.2), as they are before
/// the first packet.
pub(super) fn parameters<W: Write>(log: &mut QlogLog<W>, own: &QuicProfile, peer: &QuicProfile) {
    for (profile, owner) in [(own, "local"), (peer, "remote")] {
        let set = profile.parameters();
        let stream = Some(set.windows.stream);
        log.write_event(
            Instant::ZERO,
            QlogData::ParametersSet(QlogParameters {
                owner: Some(owner.to_owned()),
                initial_max_data: Some(set.windows.connection),
                initial_max_stream_data_bidi_local: stream,
                initial_max_stream_data_bidi_remote: stream,
                max_ack_delay: Some(set.max_ack_delay.as_millis()),
                ack_delay_exponent: Some(set.ack_delay_exponent.into()),
                ..QlogParameters::default()
            }),
        );
    }
}

/// The constants of RFC 9002 in this profile; factors by the names of the drafts.
pub(super) fn recovery(profile: &QuicProfile) -> (RecoveryParameters, Map<String, Value>) {
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

impl QuicPacketLog {
    pub(super) fn new(peer: &QuicProfile) -> Self {
        Self { unit: 1 << peer.parameters().ack_delay_exponent, ..Self::default() }
    }

    pub(super) fn on_event<W: Write>(
        &mut self,
        log: &mut QlogLog<W>,
        at: Instant,
        event: RunEvent,
    ) {
        match event {
            RunEvent::Sent { kind, .. } => self.announced = Some(kind),
            RunEvent::QuicPacketLost { number, space, trigger: by } => {
                let space = Space::ALL.get(usize::from(space)).copied().unwrap_or_default();
                let trigger = match by {
                    LossTrigger::PacketThreshold => "reordering_threshold",
                    LossTrigger::TimeThreshold => "time_threshold",
                };
                if space == Space::Application
                    && let Some((first, end)) = self.in_flight.remove(&number)
                {
                    self.lost.insert(first, (end, by));
                }
                let header = header(space, number);
                log.write_event(
                    at,
                    QlogData::PacketLost { header, trigger: Some(trigger.to_owned()) },
                );
            }
            _ => {}
        }
    }

    /// Logs an outgoing packet.
    pub(super) fn sent<W: Write>(&mut self, log: &mut QlogLog<W>, at: Instant, carried: &Carried) {
        let mut packet = self.packet(carried);
        let trigger = match self.announced.take() {
            Some(SentKind::Probe | SentKind::Retransmission(Cause::LossProbe)) => Some("pto_probe"),
            Some(SentKind::Retransmission(_)) => Some(match self.reason(carried) {
                Some(LossTrigger::TimeThreshold) => "retransmit_timeout",
                _ => "retransmit_reordered",
            }),
            _ => None,
        };
        packet.trigger = trigger.map(str::to_owned);
        if carried.space == Space::Application
            && let Some(chunk) = &carried.stream
        {
            self.in_flight.insert(carried.number, (chunk.offset, chunk.end()));
        }
        log.write_event(at, QlogData::PacketSent(packet));
    }

    /// The trigger by which the retransmitted bytes were declared lost.
    fn reason(&mut self, carried: &Carried) -> Option<LossTrigger> {
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

    /// Logs an incoming packet.
    pub(super) fn arrived<W: Write>(
        &mut self,
        log: &mut QlogLog<W>,
        at: Instant,
        carried: &Carried,
    ) {
        if carried.space == Space::Application {
            for &(first, last) in &carried.ack.ranges {
                self.in_flight.retain(|number, _| !(first..=last).contains(number));
            }
        }
        let packet = self.packet(carried);
        log.write_event(at, QlogData::PacketReceived(packet));
    }

    fn packet(&self, carried: &Carried) -> QlogPacket {
        QlogPacket {
            header: header(carried.space, carried.number),
            length: Some(carried.size.into()),
            frames: self.frames(carried),
            trigger: None,
        }
    }

    fn frames(&self, carried: &Carried) -> Vec<QlogFrame> {
        let mut frames = Vec::new();
        if !carried.ack.ranges.is_empty() {
            let micros = carried.ack.delay.saturating_mul(self.unit);
            let delay = Some(Duration::from_micros(micros));
            frames.push(QlogFrame::Ack { ranges: carried.ack.ranges.clone(), delay });
        }
        if let Some(chunk) = &carried.crypto {
            frames.push(QlogFrame::Crypto { offset: chunk.offset, length: chunk.len.into() });
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
        frames.extend(carried.max_data.map(|maximum| QlogFrame::MaxData { maximum }));
        let stream_id = 0;
        frames.extend(
            carried.max_stream_data.map(|maximum| QlogFrame::MaxStreamData { stream_id, maximum }),
        );
        if let Some(chunk) = &carried.stream {
            let (offset, length, fin) = (chunk.offset, chunk.len.into(), chunk.fin);
            frames.push(QlogFrame::Stream { stream_id, offset, length, fin });
        }
        frames
    }
}

fn other(frame: Value) -> QlogFrame {
    QlogFrame::Other(match frame {
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
