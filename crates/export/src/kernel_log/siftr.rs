//! The siftr log of a sender: siftr_siftdata and siftr_chkpkt of sys/netinet/siftr.c.

use std::io::{self, Write};

use logs::siftr::{FlowInfo, SiftrFooter, SiftrGeneration, SiftrHeader, SiftrRow, SiftrWriter};
use packet::wire::Endpoints;
use packet::{IpVersion, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::Scenario;
use tcp::profile::Family;
use trace::bblog::t_flags;
use trace::pcapng::PacketDirection;
use units::{Duration, Instant};

use super::LoggedEndpoint;
use super::tcb::{LoggedTcb, small, state};
use crate::capture::EPOCH;

/// Writes the siftr log of an endpoint.
#[derive(Debug)]
pub struct Siftr<W> {
    tcb: LoggedTcb,
    between: Endpoints,
    generation: SiftrGeneration,
    writer: SiftrWriter<W>,
    stack: &'static str,
    cc: &'static str,
    flow_id: u32,
    /// Packets in and out.
    seen: [u64; 2],
    /// Packets before the connection was established, which have no row.
    skipped: [u64; 2],
    last: Instant,
    failed: Option<io::Error>,
}

impl<W: Write> Siftr<W> {
    /// A recorder that writes the siftr log of `side` to `out`.
    ///
    /// # Errors
    /// Those of `out`; the host of `side` runs QUIC.
    pub fn new(
        scenario: &Scenario,
        side: LoggedEndpoint,
        generation: SiftrGeneration,
        out: W,
    ) -> io::Result<Self> {
        let tcp = side.tcp(scenario)?;
        let tcb = LoggedTcb::new(scenario, side, tcp);
        let family = scenario.flows[side.flow.0 as usize].ip;
        let old = generation == SiftrGeneration::V1_2;
        let header = SiftrHeader {
            enabled: EPOCH,
            hz: old.then_some(tcp.profile.hz),
            sysname: concat!("ackclock ", env!("CARGO_PKG_VERSION")).to_owned(),
            sysver: tcp.profile.name.to_owned(),
            ipmode: Some(if family == IpVersion::V4 { 4 } else { 6 }),
            ..SiftrHeader::new(generation)
        };
        Ok(Self {
            between: tcb.between(scenario),
            tcb,
            generation,
            writer: SiftrWriter::new(out, &header)?,
            stack: if tcp.profile.family == Family::FreeBsd { "freebsd" } else { tcp.profile.name },
            cc: tcp.cc.name(),
            // Without a NIC that computes a hash, any nonzero number will do.
            flow_id: side.flow.0 + 1,
            seen: [0; 2],
            skipped: [0; 2],
            last: Instant::ZERO,
            failed: None,
        })
    }

    /// Writes the last line, flushes and returns the output.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let footer = self.footer();
        self.writer.footer(&footer)?;
        self.writer.finish()
    }

    fn footer(&self) -> SiftrFooter {
        let [inbound, outbound] = self.seen;
        let [skipped_in, skipped_out] = self.skipped;
        let rows = inbound + outbound - skipped_in - skipped_out;
        let two = self.generation == SiftrGeneration::V2;
        let counters: &[(&str, u64)] = if two {
            &[("global_flow_cnt", 1), ("ring_drops", 0)]
        } else {
            &[
                ("num_inbound_tcp_pkts", inbound),
                ("num_outbound_tcp_pkts", outbound),
                ("total_tcp_pkts", inbound + outbound),
                ("num_inbound_skipped_pkts_malloc", 0),
                ("num_outbound_skipped_pkts_malloc", 0),
                ("num_inbound_skipped_pkts_tcpcb", skipped_in),
                ("num_outbound_skipped_pkts_tcpcb", skipped_out),
                ("num_inbound_skipped_pkts_inpcb", 0),
                ("num_outbound_skipped_pkts_inpcb", 0),
                ("total_skipped_tcp_pkts", skipped_in + skipped_out),
            ]
        };
        let text = |number: u64| number.to_string();
        let sack = self.tcb.t_flags() & t_flags::SACK_PERMIT != 0;
        let rest = [
            self.stack.to_owned(),
            self.cc.to_owned(),
            text(self.tcb.maxseg.into()),
            text(sack.into()),
            text(self.tcb.snd_scale.into()),
            text(self.tcb.rcv_scale.into()),
            text(rows),
            text(rows),
        ];
        SiftrFooter {
            disabled: EPOCH + Duration::from_nanos(self.last.as_nanos()),
            fields: counters.iter().map(|(key, n)| ((*key).to_owned(), text(*n))).collect(),
            flows: vec![FlowInfo {
                id: two.then_some(self.flow_id),
                local: self.between.src,
                remote: self.between.dst,
                rest: if two { rest.into() } else { Vec::new() },
            }],
        }
    }

    fn row(&self, at: Instant, way: PacketDirection, segment: &Segment) -> SiftrRow {
        let (tcb, sender) = (&self.tcb, &self.tcb.sender);
        let t_flags = tcb.t_flags();
        SiftrRow {
            way,
            at: EPOCH + Duration::from_nanos(at.as_nanos()),
            local: Some(self.between.src),
            remote: Some(self.between.dst),
            flow_id: Some(self.flow_id),
            flow_type: Some(0),
            hash: Some(self.flow_id),
            ssthresh: tcb.ssthresh(),
            cwnd: small(sender.cwnd),
            bwnd: Some(0),
            snd_wnd: small(sender.snd_wnd),
            rcv_wnd: tcb.rcv_wnd,
            snd_scale: Some(tcb.snd_scale),
            rcv_scale: Some(tcb.rcv_scale),
            state: Some(tcb.state),
            mss: Some(tcb.maxseg),
            srtt: Some(sender.srtt.unwrap_or_default()),
            sack: Some(t_flags & t_flags::SACK_PERMIT != 0),
            t_flags,
            t_flags2: Some(0),
            rto: Some(sender.rto),
            snd_hiwat: small(sender.send_buffer),
            snd_cc: small(sender.buffered),
            rcv_hiwat: tcb.rcv_buffer,
            rcv_cc: tcb.unread(),
            in_flight: small(sender.flight_size()),
            segqlen: 0,
            payload: Some(segment.payload),
        }
    }
}

impl<W: Write> Recorder for Siftr<W> {
    const ON: bool = true;

    fn record(&mut self, _: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if self.tcb.concerns(who) {
            self.tcb.on_event(event, state);
        }
    }
}

impl<W: Write> Observer for Siftr<W> {
    fn tap(&mut self, at: Instant, tap: usize, _: bool, segment: &Segment) {
        let Some(out) = self.tcb.direction(tap, segment) else { return };
        if self.failed.is_some() {
            return;
        }
        self.last = at;
        if out {
            self.tcb.before_out(at, segment);
        }
        self.seen[usize::from(out)] += 1;
        if self.tcb.state < state::ESTABLISHED {
            self.skipped[usize::from(out)] += 1;
        } else {
            let way = if out { PacketDirection::Out } else { PacketDirection::In };
            self.failed = self.writer.row(&self.row(at, way, segment)).err();
        }
        if out {
            self.tcb.after_out();
        } else {
            self.tcb.after_in(at, segment);
        }
    }
}
