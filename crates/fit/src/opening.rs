//! The opening of a connection: SYNs that were lost, and options that were not negotiated.

use diagnose::{Analysis, CapturedPacket, FlowAnalysis};
use packet::{Dir, Flags};

/// Longest time in ns for which the simulated answer may leave earlier than the recorded one, and the part of the time
/// until that: timers of systems have ticks.
const EARLIER: u64 = 100_000_000;
const EARLIER_PART: u64 = 4;
/// Fewest repeated ACKs that show whether they have SACK blocks.
const FEWEST_REPEATED: u64 = 10;
/// Time in ns beyond a round trip and a half after which an answer is not that of the last SYN but of a timer.
const LATE: u64 = 50_000_000;

/// What the handshake of a capture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpeningFit {
    /// SYNs, or their answers, that were lost.
    pub lost: u64,
    /// Answers of the server to SYNs are lost until then, in ns since the client's first SYN, on the server's side: where
    /// it was not the SYNs that were lost.
    pub answers_lost_until: Option<u64>,
    /// They asked for ECN, and the one that was answered did not.
    pub only_ecn: bool,
    /// Both hosts use ECN.
    pub ecn: bool,
    /// One of the SYNs has no window scale, and windows are those of the field.
    pub no_scaling: bool,
    /// One of the SYNs does not permit SACK.
    pub no_sack: bool,
}

impl OpeningFit {
    /// What the handshake of `analysis` shows over a path whose round trip takes `rtt` ns.
    pub(crate) fn of(analysis: &Analysis, rtt: u64) -> Self {
        if !analysis.opened {
            let no_sack = has_no_sack(&analysis.packets, analysis.main_dir());
            return Self { no_sack, ..Self::default() };
        }
        let ecn = Flags::ECE | Flags::CWR;
        let mut syns = 0_u64;
        let (mut asked, mut last_asked, mut agreed) = (false, false, false);
        for packet in &analysis.packets {
            let (flags, dir) = (packet.segment.flags, packet.segment.dir);
            if packet.segment.payload > 0 && !flags.has(Flags::SYN) {
                break;
            }
            if !flags.has(Flags::SYN) {
                continue;
            }
            if dir == Dir::Forward && !flags.has(Flags::ACK) {
                syns += 1;
                last_asked = flags.has(ecn);
                asked |= last_asked;
            } else if dir == Dir::Reverse {
                agreed = flags.has(Flags::ECE) && !flags.has(Flags::CWR);
            }
        }
        let known = analysis.observed_syns.iter().flatten().filter(|syn| syn.is_complete);
        let known: Vec<_> = known.collect();
        let is_absent = |has: &dyn Fn(&packet::SynOptions) -> bool| {
            known.len() == 2 && known.iter().any(|syn| !has(&syn.options))
        };
        let answers_lost_until = answers_lost_until(&analysis.packets, rtt);
        Self {
            // The client sends another for each, and for each answer that was lost; the server repeats its answers by a
            // timer of its own, too.
            lost: syns.saturating_sub(1).max(u64::from(answers_lost_until.is_some())),
            answers_lost_until: answers_lost_until.filter(|_| !asked || last_asked),
            only_ecn: asked && !last_asked,
            ecn: last_asked && agreed,
            no_scaling: is_absent(&|syn| syn.window_scale.is_some()),
            no_sack: is_absent(&|syn| syn.sack_permitted),
        }
    }
}

/// The largest window field of the receiver of `flow`, if most have it and their scale was not captured.
pub(crate) fn window_field(analysis: &Analysis, flow: &FlowAnalysis) -> Option<u16> {
    if flow.window.is_some() {
        return None;
    }
    let of_receiver = |packet: &&CapturedPacket| packet.segment.dir != flow.dir;
    let mut fields: Vec<u16> =
        analysis.packets.iter().filter(of_receiver).map(|packet| packet.segment.window).collect();
    fields.sort_unstable();
    let most = *fields.last()?;
    (fields[fields.len() / 2] >= most - most / 8).then_some(most)
}

/// Whether the receiver of the data of direction `dir` repeats ACKs, and never with SACK blocks: the SYNs, which were not
/// captured, do not agree on them.
fn has_no_sack(packets: &[CapturedPacket], dir: Dir) -> bool {
    let (mut repeated, mut last) = (0, None);
    for packet in packets.iter().filter(|packet| packet.segment.dir != dir) {
        let segment = &packet.segment;
        if !segment.sack_blocks().is_empty() || packet.options_cut {
            return false;
        }
        let Some(ack) = segment.acknowledgment().filter(|_| segment.payload == 0) else { continue };
        // An update of the window is no repeated ACK (RFC 5681 section 2).
        let now = (ack.0, segment.window);
        repeated += u64::from(last == Some(now));
        last = Some(now);
    }
    repeated >= FEWEST_REPEATED
}

/// Until when the server's answers to SYNs were lost, in ns since the client's first SYN; `None` if the one that arrived
/// answers the last SYN.
fn answers_lost_until(packets: &[CapturedPacket], rtt: u64) -> Option<u64> {
    let (mut first, mut last_syn, mut answer) = (None, None::<u64>, None::<u64>);
    let mut is_repeated = false;
    for packet in packets {
        let (flags, at) = (packet.segment.flags, packet.at.as_nanos());
        match (packet.segment.dir, flags.has(Flags::SYN), answer) {
            (Dir::Forward, true, _) => {
                first = first.or(Some(at));
                // A retransmission of what was answered before shows that the answer was lost.
                is_repeated |= answer.is_some();
                last_syn = Some(at);
            }
            (Dir::Reverse, true, before) => {
                is_repeated |= before.is_some();
                answer = Some(at);
            }
            // The client has the last of them.
            (Dir::Forward, false, Some(answer)) => {
                let to_client = at.saturating_sub(answer).min(rtt);
                let since_syn = answer.saturating_sub(last_syn?);
                if !is_repeated && since_syn <= rtt + rtt / 2 + LATE {
                    return None;
                }
                let to_server = rtt - to_client;
                let left =
                    (answer.saturating_sub(first?) + to_client / 2).checked_sub(to_server / 2)?;
                let until = left.saturating_sub(EARLIER.min(left / EARLIER_PART));
                return (until > 0).then_some(until);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_packets::packet;

    /// Packets of an opening over 40 ms: time in ms, direction, SYN and ACK.
    fn opening(packets: &[(u64, Dir, bool, bool)]) -> Vec<CapturedPacket> {
        let of = |&(ms, dir, syn, ack): &(u64, Dir, bool, bool)| {
            let mut one = packet(ms * 1_000, dir, 0, 0, 0);
            let flags = [(syn, Flags::SYN), (ack, Flags::ACK)];
            one.segment.flags = flags
                .into_iter()
                .filter(|one| one.0)
                .fold(Flags::default(), |all, one| all | one.1);
            one
        };
        packets.iter().map(of).collect()
    }

    #[test]
    fn repeated_acks_without_blocks_show_that_sack_is_off() {
        let acks = |number: u64| -> Vec<_> {
            (0..number).map(|n| packet(n * 1_000, Dir::Reverse, 0, 1_000, 0)).collect()
        };
        assert!(has_no_sack(&acks(12), Dir::Forward));
        assert!(!has_no_sack(&acks(3), Dir::Forward));
        let mut with_blocks = acks(12);
        let mut blocks = packet::SackBlocks::EMPTY;
        let block = packet::SackBlock { left: units::SeqNum(2_000), right: units::SeqNum(3_000) };
        assert!(blocks.push(block));
        with_blocks[5].segment.options = packet::Options::Sack(blocks);
        assert!(!has_no_sack(&with_blocks, Dir::Forward));
    }

    #[test]
    fn answers_that_come_by_a_timer_of_the_server_were_lost_before() {
        use Dir::{Forward, Reverse};
        let until = |packets: &[_]| answers_lost_until(&opening(packets), 40_000_000);
        // At the client: the second SYN is answered.
        let syn_lost = [
            (0, Forward, true, false),
            (1_000, Forward, true, false),
            (1_040, Reverse, true, true),
            (1_040, Forward, false, true),
        ];
        assert_eq!(until(&syn_lost), None);
        // The answers to both are lost, and a third leaves the server at 2,020 ms.
        let mut answers_lost = syn_lost;
        answers_lost[2].0 = 2_040;
        answers_lost[3].0 = 2_040;
        assert_eq!(until(&answers_lost), Some(1_920_000_000));
        // The same at the server.
        let at_server = [
            (20, Forward, true, false),
            (20, Reverse, true, true),
            (1_020, Forward, true, false),
            (1_020, Reverse, true, true),
            (2_020, Reverse, true, true),
            (2_060, Forward, false, true),
        ];
        assert_eq!(until(&at_server), Some(1_920_000_000));
    }
}
