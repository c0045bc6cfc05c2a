//! The qlog of a sender: of QUIC directly, of TCP mapped to the terms of QUIC.
//!
//! `log` writes events and changes of the sender's state, `segments` the packets of a TCP sender,
//! `packets` those of a QUIC sender.

mod log;
mod packets;
mod segments;

use std::io::{self, Write};

use logs::qlog::{QlogFormat, RecoveryParameters, Trace, Vantage};
use packet::{Dir, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use serde_json::{Map, json};
use sim::Observer;
use sim::scenario::{HostSpec, Scenario, StackSpec};
use units::Instant;

use crate::capture::EPOCH;
use crate::kernel_log::LoggedEndpoint;
use log::QlogLog;
use packets::QuicPacketLog;
use segments::TcpPacketLog;

/// Writes the qlog of an endpoint.
#[derive(Debug)]
pub struct Qlog<W> {
    side: LoggedEndpoint,
    log: QlogLog<W>,
    stack: PacketLog,
}

/// The packet events of the stack.
#[derive(Debug)]
enum PacketLog {
    Tcp(TcpPacketLog),
    Quic(QuicPacketLog),
    /// A real implementation, which shows its window and round trip, and no packets.
    Real,
}

impl<W: Write> Qlog<W> {
    /// A recorder that writes the qlog of `side` to `out`; `sha256` is the checksum of the
    /// scenario.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(
        scenario: &Scenario,
        side: LoggedEndpoint,
        sha256: &str,
        form: QlogFormat,
        out: W,
    ) -> io::Result<Self> {
        let host = &scenario.hosts[usize::from(side.host.0)];
        let flow = &scenario.flows[side.flow.0 as usize];
        let client = side.out == Dir::Forward;
        let trace = Trace {
            title: scenario.title.clone(),
            description: description(host),
            vantage: if client { Vantage::Client } else { Vantage::Server },
            vantage_name: host.name.clone(),
            group_id: flow.name.clone(),
            protocols: match host.stack {
                StackSpec::Quic(_) | StackSpec::Real(_) => vec!["QUIC".to_owned()],
                StackSpec::Tcp(_) => vec!["QUIC".to_owned(), "TCP".to_owned()],
            },
            epoch: Some(EPOCH),
        };
        let details = [
            ("seed", json!(scenario.seed)),
            ("sha256", json!(sha256)),
            ("profile", json!(host.stack.profile_name())),
            ("cc", json!(host.stack.cc_name())),
            ("ackclock", json!(env!("CARGO_PKG_VERSION"))),
        ];
        let details: Map<_, _> =
            details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut log = QlogLog::new(out, &trace, form, &scenario.title, details)?;
        let stack = match &host.stack {
            StackSpec::Quic(own) => {
                let peer = if client { flow.to } else { flow.from };
                let peer = scenario.hosts[peer].stack.quic().unwrap_or(own);
                packets::parameters(&mut log, &own.profile, &peer.profile);
                let (fixed, factors) = packets::recovery(&own.profile);
                log.announce(fixed, factors);
                PacketLog::Quic(QuicPacketLog::new(&peer.profile))
            }
            StackSpec::Real(_) => PacketLog::Real,
            StackSpec::Tcp(tcp) => {
                // One tick of the host, at least a millisecond.
                let granularity = (1_000 / u64::from(tcp.profile.hz).max(1)).max(1);
                let timer_granularity = Some(granularity);
                let fixed = RecoveryParameters { timer_granularity, ..Default::default() };
                log.announce(fixed, Map::new());
                PacketLog::Tcp(TcpPacketLog::default())
            }
        };
        Ok(Self { side, log, stack })
    }

    /// Closes the log, flushes and returns the output.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(self) -> io::Result<W> {
        self.log.finish()
    }
}

fn description(host: &HostSpec) -> String {
    let cc = host.stack.cc_name();
    match &host.stack {
        StackSpec::Quic(_) | StackSpec::Real(_) => {
            format!("{} with {cc}, in virtual time", host.stack.profile_name())
        }
        StackSpec::Tcp(tcp) => format!(
            "TCP of {} with {cc} in QUIC's words: a packet is a segment or burst of the stack, \
             stream 0 is the payload",
            tcp.profile.name,
        ),
    }
}

impl<W: Write> Recorder for Qlog<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if (who.host, who.flow) != (self.side.host, self.side.flow) {
            return;
        }
        match &mut self.stack {
            PacketLog::Tcp(segments) => segments.on_event(event),
            PacketLog::Quic(packets) => packets.on_event(&mut self.log, at, event),
            PacketLog::Real => {}
        }
        match (state, event) {
            (Some(sender), _) => {
                let flight = match self.stack {
                    PacketLog::Tcp(_) => sender.flight_size(),
                    PacketLog::Quic(_) | PacketLog::Real => sender.in_flight,
                };
                self.log.update(at, sender, flight, event);
            }
            // The next event has the state.
            (None, Event::RttSample { rtt }) => self.log.on_sample(rtt),
            (None, _) => {}
        }
    }
}

impl<W: Write> Observer for Qlog<W> {
    fn tap(&mut self, at: Instant, tap: usize, _: bool, segment: &Segment) {
        if tap != self.side.tap || segment.flow != self.side.flow {
            return;
        }
        let PacketLog::Tcp(segments) = &mut self.stack else { return };
        if segment.dir == self.side.out {
            segments.sent(&mut self.log, at, segment);
        } else {
            segments.arrived(&mut self.log, at, segment);
        }
    }

    fn datagram(&mut self, at: Instant, tap: usize, _: bool, packet: &quic::QuicPacket) {
        if tap != self.side.tap || packet.flow != self.side.flow {
            return;
        }
        let PacketLog::Quic(packets) = &mut self.stack else { return };
        if packet.dir == self.side.out {
            packets.sent(&mut self.log, at, packet);
        } else {
            packets.arrived(&mut self.log, at, packet);
        }
    }
}
