//! The oracle: which transfers of a world must finish, and with how many bytes.
//!
//! If the run is not cut short, every connection ends: it delivers or aborts, and none waits for
//! ever, except for a listener whose peer resets. A connection must deliver if its faults are
//! survivable, unless the application resets it or keepalive aborts it after a short idle time.
//!
//! Faults by number end by themselves: a list of packets, an outage. Random faults do not, so the
//! rule is that an abort must be very unlikely. A sender aborts after at least twelve
//! retransmissions of one segment (FreeBSD's TCP_MAXRXTSHIFT; Linux's tcp_retries2 is 15), and each
//! needs a packet in each direction. Let `q` be the probability that one of the two is lost,
//! whatever happened before. Each listed fault may consume another of the twelve, and an outage
//! those that are due during it. With `q` at most a quarter and at most four consumed otherwise,
//! 0.25 to the power of 8 remains: one in 65,000 for a segment that meets all faults at once, which
//! fewer than one in a thousand segments does. Beyond these limits a world may abort connections,
//! but may not violate an invariant.
//!
//! FreeBSD's base stack counts consecutive timeouts until it measures a round-trip time: only
//! tcp_xmit_timer sets `t_rxtshift` to zero. Without timestamps retransmitted segments are not
//! measured (Karn), so a loss of each of thirteen consecutive segments makes it abort
//! (tcp_timer_rexmt). A list of bytes may cause them, and so may any queue that fills: it drops the
//! last segments of each flight, which are the new ones, and only those are timed.
//!
//! A QUIC sender aborts after ten consecutive probe timeouts without a packet from the peer, the
//! first of which may be only 27 ms
//! after the last packet (RFC 9002 section 6.2.1, with acknowledgments delayed by at most 25 ms): a
//! fifth of a second without packets consumes three of them, each listed fault another. So the
//! limits are lower, and five remain, each lost with a probability of at most a tenth.

use core::ops::Mul;

use net::link::QueueLimit;
use sim::scenario::{
    App, Close, ElementSpec, ExchangeSide, FlowSpec, HostSpec, LinkCapacity, PathSpec, QdiscConfig,
    Scenario, SelectionRule, SynOffers,
};
use tcp::profile::{LossDetectionRule, ReceiveBufferRule, TcpProfile};
use units::{Bytes, Duration, Rate};

use scenario::units_text::MAX_DURATION;

/// A slower line is filled by spurious retransmissions: at this rate it transmits the largest
/// packet of a world within the minimum RTO, 200 ms.
const SLOWEST: u64 = 500_000;
/// Retransmissions that listed faults may consume.
const MOST_LISTED: usize = 4;
/// Smallest MTU that every stack and IP version follows (RFC 8200 section 5).
const LEAST_MTU: Bytes = Bytes(1_280);
/// A fourth retransmission is at most about 15 s after the first transmission.
const LONGEST_OUTAGE: Duration = Duration::from_secs(4);
/// Three QUIC probe timeouts.
const SHORT_OUTAGE: Duration = Duration::from_millis(180);
/// Retransmissions of one segment last for some minutes, and no application pauses for that long.
const LONGEST_SILENCE: Duration = Duration::from_secs(3_600);

/// Returns whether the run is not cut short.
pub(super) fn has_time(scenario: &Scenario) -> bool {
    scenario.duration == MAX_DURATION
}

/// Returns whether this flow must finish.
pub(super) fn must_end(scenario: &Scenario, flow: &FlowSpec) -> bool {
    has_time(scenario)
        && totals(flow).is_some()
        && flow.close == Close::Fin
        && has_long_keepalive(scenario, flow)
        && !stays_shut(scenario, flow)
        && !splits_agreement(scenario, flow)
        && !may_be_refused(scenario, flow)
        && survives(scenario, flow)
}

/// Returns whether the listening side may wait for ever. The reset may be lost; and if it precedes
/// the establishment of the connection, the listener keeps listening (RFC 9293 section 3.10.7.4).
pub(super) fn may_wait(scenario: &Scenario, flow: &FlowSpec) -> bool {
    flow.close == Close::Reset
        || may_be_refused(scenario, flow)
        || may_be_cut_off(scenario, flow)
        || may_probe_for_ever(scenario, flow)
}

/// Returns whether the accept queue of the listening host may be full: then its SYNs or the end of its
/// handshake are dropped, perhaps until one end gives up.
fn may_be_refused(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let listen = scenario.hosts[flow.to].stack.tcp().and_then(|tcp| tcp.listen);
    listen.is_some_and(|queue| {
        let rivals = scenario.flows.iter().filter(|other| other.to == flow.to);
        rivals.count() > queue.backlog as usize + 1
    })
}

/// The elements of a route, shared ones included.
fn elements<'a>(
    scenario: &'a Scenario,
    route: &'a [ElementSpec],
) -> impl Iterator<Item = &'a ElementSpec> {
    route.iter().map(|element| match element {
        ElementSpec::Shared(index) => &scenario.shared[*index].element,
        own => own,
    })
}

/// Returns whether a box on the path may silence one end while the other waits for it: the packets of
/// a forgotten or reset connection do not pass, nor those that are too large.
fn may_be_cut_off(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let Some(path) = scenario.paths.get(flow.path) else { return false };
    [&path.forward, &path.reverse].into_iter().any(|route| {
        elements(scenario, route).any(|element| match *element {
            ElementSpec::Forget { .. } | ElementSpec::Reset(_) => true,
            ElementSpec::Mtu { size, icmp, .. } => !icmp || size < LEAST_MTU,
            _ => false,
        })
    })
}

/// Returns whether a box removes from a SYN-ACK what it leaves in the SYN. Then one end scales
/// windows, or sends and expects options, and the other does not.
fn splits_agreement(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let Some(path) = scenario.paths.get(flow.path) else { return false };
    let removed = |route: &[ElementSpec]| {
        elements(scenario, route).fold(SynOffers::NONE, |all, element| match element {
            ElementSpec::Strip(offers) => all | *offers,
            _ => all,
        })
    };
    let [forward, reverse] = [removed(&path.forward), removed(&path.reverse)];
    let along = path.from == flow.from;
    let (syn, syn_ack) = if along { (forward, reverse) } else { (reverse, forward) };
    !syn.has(syn_ack.without(SynOffers::ECN))
}

/// Returns whether the probes of a flow may continue for ever.
pub(super) fn may_probe_for_ever(scenario: &Scenario, flow: &FlowSpec) -> bool {
    postpones_probes(scenario, flow)
        || repeats_losses(scenario, flow)
        || stays_below_a_segment(scenario, flow)
        || stays_shut(scenario, flow)
}

/// Returns whether the receive buffer of one end begins with less than four packets and the other end runs
/// RACK. A window below a segment then may stay so, since rack.c neither sends into it nor puts data
/// into its probes (rack_do_segment, rack_timeout_persist), and no buffer grows without data.
fn stays_below_a_segment(scenario: &Scenario, flow: &FlowSpec) -> bool {
    ends(scenario, flow).any(|(one, other)| {
        let (buffer, packet) = match one.receive_buffer {
            ReceiveBufferRule::FreeBsd { space, .. } | ReceiveBufferRule::Fixed { space } => {
                (space, Bytes::ZERO)
            }
            ReceiveBufferRule::Linux { rmem, truesize, .. } => (rmem[1], truesize),
        };
        buffer.get() < 4 * memory(packet, one)
            && matches!(other.loss, LossDetectionRule::FreeBsdRack(_))
    })
}

/// Returns whether the receive buffer of one end is Linux's, begins with less than a packet, and its windows are
/// not scaled. A window of zero then may stay so: __tcp_select_window keeps it while the limit of the window
/// (`rcv_ssthresh`), which is that of the buffer as the first packet shows it, is below a segment, and that limit
/// rises with data alone.
fn stays_shut(scenario: &Scenario, flow: &FlowSpec) -> bool {
    ends(scenario, flow).any(|(one, other)| {
        let ReceiveBufferRule::Linux { rmem, truesize, .. } = one.receive_buffer else {
            return false;
        };
        rmem[1].get() < memory(truesize, one) && !(one.window_scaling && other.window_scaling)
    })
}

/// The profiles of both ends of a TCP flow, each with that of its peer.
fn ends<'a>(
    scenario: &'a Scenario,
    flow: &FlowSpec,
) -> impl Iterator<Item = (&'a TcpProfile, &'a TcpProfile)> {
    let tcp = |host: usize| scenario.hosts[host].stack.tcp().map(|tcp| &tcp.profile);
    let both = tcp(flow.from).zip(tcp(flow.to));
    both.into_iter().flat_map(|(from, to)| [(from, to), (to, from)])
}

/// Memory of a packet: `truesize`, or twice the profile's MTU if that is more.
fn memory(truesize: Bytes, profile: &TcpProfile) -> u64 {
    truesize.get().max(2 * u64::from(profile.mtu))
}

/// Returns whether every second packet of a QUIC flow is lost. Of the two probes of a timeout it may
/// be the same one each time. The acknowledgment of the other resets the timeouts that are counted
/// (RFC 9002 section 6.2.1), and every packet received restarts the idle timeout (RFC 9000 section
/// 10.1).
fn repeats_losses(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let quic = [flow.from, flow.to].iter().all(|&host| scenario.hosts[host].stack.quic().is_some());
    let Some(path) = scenario.paths.get(flow.path).filter(|_| quic) else { return false };
    let loses_half = |element: &ElementSpec| match element {
        ElementSpec::Loss { rule: SelectionRule::Every(n), .. }
        | ElementSpec::Corrupt { rule: SelectionRule::Every(n), .. } => n.get() <= 2,
        // A periodic outage may meet the same probe each time, too.
        ElementSpec::Outage { period, .. } => period.is_some(),
        _ => false,
    };
    path.forward.iter().chain(&path.reverse).any(|element| match element {
        ElementSpec::Shared(index) => loses_half(&scenario.shared[*index].element),
        own => loses_half(own),
    })
}

/// Returns whether the keepalive probes of one end suppress the loss probe of the other end's RACK.
/// Each arriving segment restarts the timer, and rack_timer_start raises its remaining time to
/// `rack_tlp_min` each time.
pub(super) fn postpones_probes(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let Some(wanted) = flow.keepalive else { return false };
    [(flow.from, flow.to), (flow.to, flow.from)].iter().any(|&(one, other)| {
        let tcp = |host: usize| scenario.hosts[host].stack.tcp();
        let (Some(one), Some(other)) = (tcp(one), tcp(other)) else { return false };
        let idle = wanted.idle.unwrap_or(one.profile.keepalive.idle);
        matches!(&other.profile.loss, LossDetectionRule::FreeBsdRack(rule) if idle < rule.pto.least)
    })
}

/// Returns whether keepalive aborts only after an idle time longer than any between
/// retransmissions.
fn has_long_keepalive(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let Some(wanted) = flow.keepalive else { return true };
    [flow.from, flow.to].iter().all(|&host| {
        let Some(tcp) = scenario.hosts[host].stack.tcp() else { return true };
        let own = tcp.profile.keepalive;
        let interval = wanted.interval.unwrap_or(own.interval);
        let count = u64::from(wanted.count.unwrap_or(own.count));
        let idle = wanted.idle.unwrap_or(own.idle);
        idle + interval.saturating_mul(count) >= LONGEST_SILENCE
    })
}

/// Payload bytes that the connecting and the listening host write in total, each `None` if the run
/// decides them; `None` for an unlimited application.
pub(super) fn totals(flow: &FlowSpec) -> Option<[Option<Bytes>; 2]> {
    let known = match flow.app {
        App::Video(ref video) => {
            let requests = video.request.get().max(1).saturating_mul(video.chunks?);
            return Some([Some(Bytes(requests)), None]);
        }
        App::Page { ref page, .. } => return page.count.map(|_| [None; 2]),
        App::Bulk { bytes, .. } | App::Paced { bytes, .. } | App::OnOff { bytes, .. } => {
            [bytes?, Bytes::ZERO]
        }
        App::Datagrams(_) => return None,
        App::Exchange(ref exchange) => {
            [ExchangeSide::Client, ExchangeSide::Server].map(|side| exchange.bytes(side))
        }
        App::Requests { request, response, count, .. } => {
            [request, response].map(|bytes| Bytes(bytes.get().saturating_mul(count.unwrap_or(0))))
        }
    };
    Some(known.map(Some))
}

/// Faults that the retransmissions of a flow can survive.
struct FaultTolerance {
    passes: Probability,
    listed: usize,
    outage: Duration,
}

impl FaultTolerance {
    const TCP: Self =
        Self { passes: Probability::THREE_QUARTERS, listed: MOST_LISTED, outage: LONGEST_OUTAGE };

    /// `None` if losses may go undetected: without a time threshold, only later packets reveal
    /// them.
    fn of(scenario: &Scenario, flow: &FlowSpec) -> Option<Self> {
        let ends = [flow.from, flow.to].map(|host| scenario.hosts[host].stack.quic());
        let [Some(one), Some(other)] = ends.map(|end| Some(&end?.profile)) else {
            return Some(Self::TCP);
        };
        let next_is = |end: &quic::QuicProfile| end.loss.time_eighths.is_some_and(|n| n > 0);
        let usual = |end: &quic::QuicProfile| end.acks.max_delay >= Duration::from_millis(25);
        let outage = if usual(one) && usual(other) { SHORT_OUTAGE } else { Duration::ZERO };
        let patience = Self { passes: Probability(900_000), listed: 2, outage };
        (next_is(one) && next_is(other)).then_some(patience)
    }
}

fn survives(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let Some(patience) = FaultTolerance::of(scenario, flow) else { return false };
    let Some(path) = scenario.paths.get(flow.path) else { return false };
    let mtu = |host: &HostSpec| Bytes(u64::from(host.stack.mtu()));
    let mut faults = PathFaults {
        largest: scenario.hosts.iter().map(mtu).max().unwrap_or_default(),
        passes: Probability::ONE,
        listed: 0,
        outage: Duration::ZERO,
        too_tight: false,
        before: 0,
        counts_on: counts_timeouts_on(scenario, flow),
        is_quic: scenario.hosts[flow.from].stack.tcp().is_none(),
    };
    let over = |path: usize| scenario.flows.iter().filter(|flow| flow.path == path).count() as u64;
    let through = |element: &ElementSpec| {
        let paths = scenario.paths.iter().enumerate();
        let leads =
            |path: &PathSpec| path.forward.iter().chain(&path.reverse).any(|e| e == element);
        paths.filter(|(_, path)| leads(path)).map(|(number, _)| over(number)).sum()
    };
    for route in [&path.forward, &path.reverse] {
        faults.before = 0;
        for element in route {
            match element {
                ElementSpec::Shared(index) => {
                    faults.add(&scenario.shared[*index].element, through(element));
                }
                own => faults.add(own, over(flow.path)),
            }
        }
    }
    !faults.too_tight
        && faults.passes >= patience.passes
        && faults.listed <= patience.listed
        && faults.outage <= patience.outage
}

/// All faults that can affect a packet and its answer.
struct PathFaults {
    /// IP bytes of the largest packet.
    largest: Bytes,
    /// Least probability that both pass the random and the counting faults.
    passes: Probability,
    listed: usize,
    outage: Duration,
    /// An element is too slow or too small.
    too_tight: bool,
    /// Packets of the same flow that may overtake a given one: a retransmission and the packets
    /// sent with it may be reordered every time.
    before: u64,
    /// Timeouts of several segments accumulate ([`counts_timeouts_on`]).
    counts_on: bool,
    /// An end is not of TCP.
    is_quic: bool,
}

/// Returns whether an end accumulates the timeouts of several segments: FreeBSD's base stack
/// without timestamps.
fn counts_timeouts_on(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let ends = [flow.from, flow.to].map(|host| scenario.hosts[host].stack.tcp());
    let [Some(one), Some(other)] = ends else { return false };
    let timestamps = one.profile.timestamps && other.profile.timestamps;
    let base = |profile: &TcpProfile| matches!(profile.loss, LossDetectionRule::Sack(_));
    !timestamps && (base(&one.profile) || base(&other.profile))
}

impl PathFaults {
    /// Adds the faults of an element that `flows` pass through.
    fn add(&mut self, element: &ElementSpec, flows: u64) {
        match element {
            ElementSpec::Loss { rule, .. } | ElementSpec::Corrupt { rule, .. } => match rule {
                SelectionRule::Listed(packets) => self.listed += packets.len(),
                SelectionRule::Bytes(_) if self.counts_on => self.too_tight = true,
                // A packet that carries one of the bytes, at most `times` times.
                SelectionRule::Bytes(range) => self.listed += range.times as usize,
                // Duplicates may make every n-th the same one of two, hence twice. Simultaneous
                // timers of several flows may make it the same flow every time.
                SelectionRule::Every(n) if flows == 1 => {
                    self.passes = self.passes * Probability::of(2, n.get()).others();
                }
                SelectionRule::Every(_) => self.too_tight = true,
                SelectionRule::Changing(share) => {
                    let worst =
                        share.steps().iter().map(|(_, p)| Probability::of(p.num(), p.den()));
                    self.passes = self.passes * worst.max().unwrap_or(Probability::ONE).others();
                }
                SelectionRule::Share(p) => {
                    self.passes = self.passes * Probability::of(p.num(), p.den()).others();
                }
                // A loss makes the next more probable.
                SelectionRule::Correlated { .. } | SelectionRule::FourState(_) => {
                    self.too_tight = true;
                }
                SelectionRule::GilbertElliott(channel) => {
                    // Every previous loss found the channel bad: it is still bad with probability 1
                    // - r.
                    let [p, r, h, k] = [channel.p, channel.r, channel.h, channel.k]
                        .map(|share| Probability::of(share.num(), share.den()));
                    let after_bad = r.others() * h.others() + r * k.others();
                    let after_good = p * h.others() + p.others() * k.others();
                    let worse = after_bad.max(after_good);
                    self.passes = self.passes * worse.others();
                }
            },
            // The first ICMP error shortens all later segments. QUIC ignores it, and no segment of
            // IPv6 becomes shorter than its least MTU.
            ElementSpec::Mtu { size, icmp, .. } => {
                let fits = self.largest <= *size;
                self.too_tight |= !fits && (!icmp || *size < LEAST_MTU || self.is_quic);
                self.listed += usize::from(!fits);
            }
            ElementSpec::Forget { .. } | ElementSpec::Reset(_) => self.too_tight = true,
            // Its retransmissions may meet it every time.
            ElementSpec::Outage { period: Some(_), .. } => self.too_tight = true,
            // Bursts of few packets are a slow line without a limit.
            ElementSpec::Slot(slot) => {
                self.too_tight |= slot.packets.is_some() || slot.bytes.is_some();
            }
            // Its limit counts all packets, and later ones may overtake every time.
            ElementSpec::Netem(_) => self.too_tight = true,
            ElementSpec::Outage { from, until, .. } => {
                self.outage += until.saturating_sub(*from);
            }
            // A line is as slow as at its slowest; suspensions may meet every retransmission.
            ElementSpec::LinkWithQdisc {
                capacity: LinkCapacity::Changing(rate),
                limit,
                limits: None,
                queue: QdiscConfig::DropTail,
            } => {
                let slowest = rate.steps().iter().map(|&(_, rate)| rate).min().unwrap_or(0);
                match Rate::from_bits_per_second(slowest) {
                    Some(rate) => self.room(rate, *limit, 2 * (flows - 1), flows),
                    None => self.too_tight = true,
                }
            }
            // Its drops before it is full depend on the traffic.
            ElementSpec::LinkWithQdisc { .. } => self.too_tight = true,
            // One packet is in transmission.
            ElementSpec::Link { rate, limit } => self.room(*rate, *limit, 2 * (flows - 1), flows),
            ElementSpec::Shaper { rate, limit, .. } => self.room(*rate, *limit, 2 * flows, flows),
            ElementSpec::Policer { rate, burst } => {
                self.room(*rate, QueueLimit::Bytes(*burst), 2 * flows, flows);
            }
            ElementSpec::Reverse(params) => self.before += u64::from(params.group.get()) - 1,
            ElementSpec::Displace { places, .. } => self.before += u64::from(places.get()),
            ElementSpec::Late { .. } => self.before += 1,
            _ => {}
        }
    }

    /// Requires capacity for a packet and its answer of every flow, and for the packets that may
    /// overtake it: with several retransmissions at one instant, the same one would be dropped
    /// every time.
    fn room(&mut self, rate: Rate, limit: QueueLimit, packets: u64, flows: u64) {
        // The timeouts of several flights accumulate (tcp_timer_rexmt).
        self.too_tight |= self.counts_on;
        let packets = packets + self.before * flows;
        let enough = match limit {
            QueueLimit::Bytes(bytes) => bytes.get() >= packets * self.largest.get(),
            QueueLimit::Packets(limit) => u64::from(limit) >= packets,
        };
        self.too_tight |= rate.bits_per_second() < SLOWEST || !enough;
    }
}

/// A probability in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Probability(u64);

impl Probability {
    const ONE: Self = Self(1_000_000);
    const THREE_QUARTERS: Self = Self(750_000);

    fn of(num: u64, den: u64) -> Self {
        Self(units::ratio::scaled_up(num, Self::ONE.0, den).min(Self::ONE.0))
    }

    const fn others(self) -> Self {
        Self(Self::ONE.0 - self.0)
    }
}

impl Mul for Probability {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0 / Self::ONE.0)
    }
}

impl core::ops::Add for Probability {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self((self.0 + other.0).min(Self::ONE.0))
    }
}
