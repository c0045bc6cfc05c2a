//! What a world owes: must its transfers come to their end, and with how many bytes?
//!
//! Where nothing cuts the run short, every connection ends: it delivers or it is given up, and
//! none waits for ever, but for a listener whose peer resets. These must deliver, unless the
//! application resets them or lets them be given up after a short silence:
//!
//! Faults by number stop by themselves: a list of packets, an outage. Faults by chance never do,
//! so the rule is that giving up must be next to impossible. A sender gives up after twelve
//! retransmissions of one segment at least (TCP_MAXRXTSHIFT of FreeBSD; Linux' tcp_retries2 is
//! 15), and each needs a packet there and a packet back. Let `q` be the chance that one of the two
//! is lost, whatever happened before. Every fault of a list may take another of the twelve, and an
//! outage those that are due while it lasts. Where `q` is a quarter at most and no more than four
//! are taken otherwise, 0.25 to the power of 8 is left: one in 65,000 for a segment that meets all
//! of that at once, which hardly one in a thousand segments does. Beyond these limits a world may
//! give up; what it may not do is break a law.
//!
//! FreeBSD's base stack counts timeouts in a row until it measures a round trip: tcp_xmit_timer alone sets
//! `t_rxtshift` to zero. Without timestamps what was retransmitted is not measured (Karn), so a loss of each
//! of thirteen segments, one after another, makes it give up (tcp_timer_rexmt), and a list of bytes may cause them.
//!
//! A QUIC sender gives up after ten probe timeouts in a row, and its first comes as soon as 27 ms
//! after the last packet (RFC 9002 section 6.2.1, with acknowledgments delayed by 25 ms at most): a
//! fifth of a second without any packet takes three of them, each fault of a list another. So less
//! is allowed there, and five are left of which each is lost with a tenth at most.

use core::ops::Mul;

use net::link::Limit;
use sim::scenario::{App, Close, Element, Flow, Host, Path, Rule, Scenario};
use tcp::profile::LossRule;
use units::{Bytes, Duration, Rate};

use scenario::units_text::MAX_DURATION;

/// A slower line is filled by what is sent again for its slowness: at this rate the least timeout,
/// 200 ms, lets the largest packet of a world through.
const SLOWEST: u64 = 500_000;
/// Retransmissions that lists of packets may take.
const MOST_LISTED: usize = 4;
/// A fourth retransmission comes about 15 s after the first packet at most.
const LONGEST_OUTAGE: Duration = Duration::from_secs(4);
/// Three probe timeouts of QUIC.
const SHORT_OUTAGE: Duration = Duration::from_millis(180);
/// Retransmissions of one segment go on for some minutes, and no application rests for so long.
const LONGEST_SILENCE: Duration = Duration::from_secs(3_600);

/// Does nothing cut the run short?
pub(super) fn has_time(scenario: &Scenario) -> bool {
    scenario.duration == MAX_DURATION
}

/// Must this flow of it come to its end?
pub(super) fn must_end(scenario: &Scenario, flow: &Flow) -> bool {
    has_time(scenario)
        && totals(flow).is_some()
        && flow.close == Close::Fin
        && is_patient(scenario, flow)
        && survives(scenario, flow)
}

/// May its listening side wait for ever? The reset may be lost; and where it comes before the
/// connection stands, the listener goes on listening (RFC 9293 section 3.10.7.4).
pub(super) fn may_wait(scenario: &Scenario, flow: &Flow) -> bool {
    flow.close == Close::Reset || postpones_probes(scenario, flow)
}

/// Do the keepalive probes of one end keep RACK of the other from its loss probe? Each segment that arrives
/// restarts the timer, and rack_timer_start raises what is left of it to `rack_tlp_min` each time.
pub(super) fn postpones_probes(scenario: &Scenario, flow: &Flow) -> bool {
    let Some(wanted) = flow.keepalive else { return false };
    [(flow.from, flow.to), (flow.to, flow.from)].iter().any(|&(one, other)| {
        let tcp = |host: usize| scenario.hosts[host].stack.tcp();
        let (Some(one), Some(other)) = (tcp(one), tcp(other)) else { return false };
        let idle = wanted.idle.unwrap_or(one.profile.keepalive.idle);
        matches!(&other.profile.loss, LossRule::Rack(rule) if idle < rule.pto.least)
    })
}

/// Is the silence after which its ends are given up longer than any that retransmissions leave?
fn is_patient(scenario: &Scenario, flow: &Flow) -> bool {
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

/// Payload bytes that the host which connects and the one which listens have written in the end;
/// `None` for an application without end.
pub(super) fn totals(flow: &Flow) -> Option<[Bytes; 2]> {
    Some(match flow.app {
        App::Bulk { bytes, .. } | App::Paced { bytes, .. } | App::OnOff { bytes, .. } => {
            [bytes?, Bytes::ZERO]
        }
        App::Requests { request, response, count, .. } => {
            [request, response].map(|bytes| Bytes(bytes.get().saturating_mul(count.unwrap_or(0))))
        }
    })
}

/// What faults may take of the retransmissions of a flow.
struct Patience {
    passes: Share,
    listed: usize,
    outage: Duration,
}

impl Patience {
    const TCP: Self =
        Self { passes: Share::THREE_QUARTERS, listed: MOST_LISTED, outage: LONGEST_OUTAGE };

    /// `None` where losses go unseen: without a rule of time only packets behind them tell.
    fn of(scenario: &Scenario, flow: &Flow) -> Option<Self> {
        let ends = [flow.from, flow.to].map(|host| scenario.hosts[host].stack.quic());
        let [Some(one), Some(other)] = ends.map(|end| Some(&end?.profile)) else {
            return Some(Self::TCP);
        };
        let sees = |end: &quic::Profile| end.loss.time_eighths.is_some_and(|n| n > 0);
        let usual = |end: &quic::Profile| end.acks.max_delay >= Duration::from_millis(25);
        let outage = if usual(one) && usual(other) { SHORT_OUTAGE } else { Duration::ZERO };
        let patience = Self { passes: Share(900_000), listed: 2, outage };
        (sees(one) && sees(other)).then_some(patience)
    }
}

fn survives(scenario: &Scenario, flow: &Flow) -> bool {
    let Some(patience) = Patience::of(scenario, flow) else { return false };
    let Some(path) = scenario.paths.get(flow.path) else { return false };
    let mtu = |host: &Host| Bytes(u64::from(host.stack.mtu()));
    let mut faults = Faults {
        largest: scenario.hosts.iter().map(mtu).max().unwrap_or_default(),
        passes: Share::ONE,
        listed: 0,
        outage: Duration::ZERO,
        too_tight: false,
        before: 0,
        counts_on: counts_timeouts_on(scenario, flow),
    };
    let over = |path: usize| scenario.flows.iter().filter(|flow| flow.path == path).count() as u64;
    let through = |element: &Element| {
        let paths = scenario.paths.iter().enumerate();
        let leads = |path: &Path| path.forward.iter().chain(&path.reverse).any(|e| e == element);
        paths.filter(|(_, path)| leads(path)).map(|(number, _)| over(number)).sum()
    };
    for road in [&path.forward, &path.reverse] {
        faults.before = 0;
        for element in road {
            match element {
                Element::Shared(index) => {
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

/// All that can happen to a packet and its answer.
struct Faults {
    /// IP bytes of the largest packet.
    largest: Bytes,
    /// Least chance that both get through what goes by chance or by turns.
    passes: Share,
    listed: usize,
    outage: Duration,
    /// A station is too slow or too small.
    too_tight: bool,
    /// Packets of the same flow that may come before the one that counts, though they left behind
    /// it: its retransmission and what goes along with it may be turned round every time.
    before: u64,
    /// Timeouts of several segments add up ([`counts_timeouts_on`]).
    counts_on: bool,
}

/// Does an end count the timeouts of several segments together: the base stack of FreeBSD without timestamps?
fn counts_timeouts_on(scenario: &Scenario, flow: &Flow) -> bool {
    let ends = [flow.from, flow.to].map(|host| scenario.hosts[host].stack.tcp());
    let [Some(one), Some(other)] = ends else { return false };
    let timestamps = one.profile.timestamps && other.profile.timestamps;
    let base = |profile: &tcp::profile::Profile| matches!(profile.loss, LossRule::Holes(_));
    !timestamps && (base(&one.profile) || base(&other.profile))
}

impl Faults {
    /// `flows` lead through the element.
    fn add(&mut self, element: &Element, flows: u64) {
        match element {
            Element::Loss { rule, .. } | Element::Corrupt { rule, .. } => match rule {
                Rule::Listed(packets) => self.listed += packets.len(),
                Rule::Bytes(_) if self.counts_on => self.too_tight = true,
                // A packet that carries one of the bytes, so many times.
                Rule::Bytes(range) => self.listed += range.times as usize,
                // Copies may make every n-th fall on the same one of two, hence twice. Timers of
                // several flows that fire together may make it fall on the same flow every time.
                Rule::Every(n) if flows == 1 => {
                    self.passes = self.passes * Share::of(2, n.get()).others();
                }
                Rule::Every(_) => self.too_tight = true,
                Rule::Share(p) => self.passes = self.passes * Share::of(p.num(), p.den()).others(),
                Rule::GilbertElliott(channel) => {
                    // Found bad by every packet that was lost before: bad still with chance 1 - r.
                    let [p, r, h, k] = [channel.p, channel.r, channel.h, channel.k]
                        .map(|share| Share::of(share.num(), share.den()));
                    let after_bad = r.others() * h.others() + r * k.others();
                    let after_good = p * h.others() + p.others() * k.others();
                    let worse = after_bad.max(after_good);
                    self.passes = self.passes * worse.others();
                }
            },
            Element::Outage { from, until, .. } => {
                self.outage += until.saturating_sub(*from);
            }
            // What it loses before it is full depends on what comes.
            Element::ManagedLink { .. } => self.too_tight = true,
            // One packet is on the line.
            Element::Link { rate, limit } => self.room(*rate, *limit, 2 * (flows - 1), flows),
            Element::Shaper { rate, limit, .. } => self.room(*rate, *limit, 2 * flows, flows),
            Element::Policer { rate, burst } => {
                self.room(*rate, Limit::Bytes(*burst), 2 * flows, flows);
            }
            Element::Reverse(params) => self.before += u64::from(params.group.get()) - 1,
            Element::Displace { places, .. } => self.before += u64::from(places.get()),
            Element::Late { .. } => self.before += 1,
            _ => {}
        }
    }

    /// A station must have room for a packet and its answer of every flow, and for what may come
    /// before it: where several are sent again at one moment, the same one would find none every
    /// time.
    fn room(&mut self, rate: Rate, limit: Limit, packets: u64, flows: u64) {
        let packets = packets + self.before * flows;
        let enough = match limit {
            Limit::Bytes(bytes) => bytes.get() >= packets * self.largest.get(),
            Limit::Packets(limit) => u64::from(limit) >= packets,
        };
        self.too_tight |= rate.bits_per_second() < SLOWEST || !enough;
    }
}

/// A chance in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Share(u64);

impl Share {
    const ONE: Self = Self(1_000_000);
    const THREE_QUARTERS: Self = Self(750_000);

    fn of(num: u64, den: u64) -> Self {
        Self(units::ratio::scaled_up(num, Self::ONE.0, den).min(Self::ONE.0))
    }

    const fn others(self) -> Self {
        Self(Self::ONE.0 - self.0)
    }
}

impl Mul for Share {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0 / Self::ONE.0)
    }
}

impl core::ops::Add for Share {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self((self.0 + other.0).min(Self::ONE.0))
    }
}
