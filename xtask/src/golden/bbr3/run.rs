//! Runs a recorded transfer with our stack.

use cc::bbr3::ProbeDraw;
use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use scenario::{Overrides, load};
use sim::Observer;
use sim::live::LiveSimulation;
use sim::scenario::{Scenario, StackSpec, TapPoint, TapSpec};
use units::{HostId, Instant, SeqNum};

use super::recording::{Bbr3Recording, InfoRow, SentPacket};
use crate::probe_draws::MadeDraw;

/// What a run gave.
#[derive(Debug, Default)]
pub(super) struct ModelRun {
    pub(super) packets: Vec<SentPacket>,
    /// The sender's state at the time of each recorded row.
    pub(super) rows: Vec<InfoRow>,
    pub(super) draws: Vec<MadeDraw>,
}

/// Records the sender's card.
#[derive(Debug)]
struct Card {
    tap: usize,
    sender: HostId,
    isn: Option<SeqNum>,
    began: u64,
    packets: Vec<SentPacket>,
    draws: Vec<MadeDraw>,
}

impl Recorder for Card {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, _: Event, state: Option<&SenderState>) {
        if who.host != self.sender {
            return;
        }
        let Some(bbr) = state.and_then(|state| state.bbr) else { return };
        // One acknowledgment may make two draws.
        let made = MadeDraw { at: at.as_nanos(), sender: 0 };
        self.draws.resize(self.draws.len().max(bbr.draws as usize), made);
    }
}

impl Observer for Card {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if tap != self.tap || !outbound {
            return;
        }
        if segment.flags.has(Flags::SYN) && self.isn.is_none() {
            self.isn = Some(segment.seq);
            self.began = at.as_nanos();
        }
        if let Some(isn) = self.isn.filter(|_| segment.payload > 0) {
            self.packets.push(SentPacket {
                ns: at.as_nanos() - self.began,
                seq: segment.seq.0.wrapping_sub(isn.0),
                len: segment.payload,
            });
        }
    }
}

/// A recording, ready to be run.
pub(super) struct Transfer {
    scenario: Scenario,
    tap: usize,
}

impl Transfer {
    /// # Errors
    /// The scenario is invalid or has no sender of TCP.
    pub(super) fn of(recording: &Bbr3Recording) -> Result<Self, String> {
        let loaded = load(&recording.scenario, &recording.name, &Overrides::default())
            .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
        let mut scenario = loaded.scenario;
        let host = scenario.flows.first().ok_or("the scenario has no flow")?.from;
        let wanted = TapSpec { host, place: TapPoint::Wire };
        let tap = scenario.taps.iter().position(|tap| *tap == wanted).unwrap_or_else(|| {
            scenario.taps.push(wanted);
            scenario.taps.len() - 1
        });
        super::prepare(&mut scenario);
        Ok(Self { scenario, tap })
    }

    /// Runs it with these draws, and reads the sender's state at the times of `rows`.
    ///
    /// # Errors
    /// The scenario cannot be run.
    pub(super) fn run(
        &mut self,
        draws: &'static [ProbeDraw],
        rows: &[InfoRow],
    ) -> Result<ModelRun, String> {
        let host = self.scenario.flows[0].from;
        let StackSpec::Tcp(tcp) = &mut self.scenario.hosts[host].stack else {
            return Err("the sender is not a modelled TCP".to_owned());
        };
        tcp.profile.bbr3_draws = draws;
        let mut card = Card {
            tap: self.tap,
            sender: HostId(host as u16),
            isn: None,
            began: 0,
            packets: Vec::new(),
            draws: Vec::new(),
        };
        let mut run = ModelRun::default();
        let mut live = LiveSimulation::new(&self.scenario, &[], &mut card)
            .map_err(|_| "the scenario cannot be set up".to_owned())?;
        let end = Instant::ZERO + self.scenario.duration;
        for row in rows {
            live.advance(Instant::from_nanos(row.ns));
            // The process that reads `tcp_info` runs when its timer has fired.
            let read_at = live.tcp(0, false).and_then(|tcp| tcp.recorded_at());
            if let Some(at) = read_at {
                live.advance(at);
            }
            let Some(tcp) = live.tcp(0, false) else {
                run.rows.push(InfoRow { pacing: 0, cwnd: 0, ssthresh: None, ..*row });
                continue;
            };
            let state = tcp.sender_state();
            run.rows.push(InfoRow {
                ns: row.ns,
                cwnd: state.cwnd.get(),
                ssthresh: state.ssthresh.map(|bytes| bytes.get()),
                pacing: state.pacing.map_or(0, |rate| rate.bits_per_second()),
            });
        }
        while !live.over()
            && let Some(at) = live.next_at().filter(|&at| at <= end)
        {
            live.advance(at);
        }
        run.packets = card.packets;
        run.draws = card.draws;
        Ok(run)
    }
}
