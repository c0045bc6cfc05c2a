//! One direction of a path as qdiscs of a device, each below the one before: netem, tbf, and htb with a
//! queue.

use core::fmt::Write;

use net::link::QueueLimit;
use net::queue::{codel, fq_codel, pie, red};
use net::selection::SelectionRule;
use sim::scenario::{
    Distribution, ElementSpec, Framing, LinkCapacity, NetemParams, PacketClass, QdiscConfig,
    SlotParams, SlotSpread,
};
use units::{Bytes, Duration, Rate, Ratio};

use super::{ETHERNET_HEADER, PACKET, Unsupported};

/// A limit that no queue of a testbed reaches.
const UNLIMITED: u32 = 1_000_000;

/// Returns the commands that give packets sent on `device` the elements of one direction.
///
/// # Errors
/// An element that no qdisc of Linux has, or that cannot follow the ones before it on one device.
pub fn qdiscs(elements: &[ElementSpec], device: &str) -> Result<String, Unsupported> {
    let mut chain = QdiscChain::new(device);
    let (before, after) = delays_before_queues(elements);
    if after {
        chain
            .note("a delay after a queue is put before it: on one device no qdisc delays after it");
    }
    for element in &before {
        chain.add(element)?;
    }
    chain.flush();
    if chain.commands.is_empty() {
        chain.note("no element: packets pass at once");
    }
    Ok(chain.commands.join("\n"))
}

/// Moves constant delays before the first queue whose qdisc has no delay below it; returns whether
/// one was moved.
fn delays_before_queues(elements: &[ElementSpec]) -> (Vec<ElementSpec>, bool) {
    let is_queue = |element: &ElementSpec| match element {
        ElementSpec::Shaper { .. } => true,
        ElementSpec::LinkWithQdisc { queue, .. } => *queue != QdiscConfig::DropTail,
        _ => false,
    };
    let Some(at) = elements.iter().position(is_queue) else { return (elements.to_vec(), false) };
    let (before, after) = elements.split_at(at);
    let is_delay = |element: &&ElementSpec| matches!(element, ElementSpec::Delay(_));
    let moved: Vec<_> = after.iter().filter(is_delay).cloned().collect();
    let is_moved = !moved.is_empty();
    let stay = after.iter().filter(|element| !is_delay(element)).cloned();
    (before.iter().cloned().chain(moved).chain(stay).collect(), is_moved)
}

/// The qdiscs of a device, the last of which has the next one below it.
struct QdiscChain<'a> {
    device: &'a str,
    commands: Vec<String>,
    /// Where the next qdisc is attached.
    parent: String,
    handles: u32,
    /// Options of the netem that is not written yet.
    netem: NetemStage,
    /// A queue that nothing can follow.
    closed: bool,
}

/// Options of a netem, each at most once and in the order in which a packet meets them.
#[derive(Default)]
struct NetemStage {
    options: String,
    limit: Option<u32>,
    /// Number of the last option.
    last: u8,
}

impl<'a> QdiscChain<'a> {
    fn new(device: &'a str) -> Self {
        Self {
            device,
            commands: Vec::new(),
            parent: "root".to_owned(),
            handles: 0,
            netem: NetemStage::default(),
            closed: false,
        }
    }

    fn note(&mut self, text: &str) {
        self.commands.push(format!("# {text}"));
    }

    /// Adds options to the present netem, or to a new one if they precede those.
    fn option(&mut self, order: u8, text: &str) -> Result<(), Unsupported> {
        if self.closed {
            let message = "tc has no qdisc after a shaper or an AQM on one device";
            return Err(Unsupported(message.to_owned()));
        }
        if order <= self.netem.last {
            self.flush();
        }
        self.netem.last = order;
        if !text.is_empty() {
            let _ = write!(self.netem.options, " {text}");
        }
        Ok(())
    }

    /// Writes the present netem.
    fn flush(&mut self) {
        if self.netem.last == 0 {
            return;
        }
        let NetemStage { options, limit, .. } = core::mem::take(&mut self.netem);
        let limit = limit.unwrap_or(UNLIMITED);
        let qdisc = format!("netem limit {limit}{options}");
        let handle = self.qdisc(&qdisc);
        self.parent = format!("parent {handle}:1");
    }

    /// Writes a qdisc; returns its handle.
    fn qdisc(&mut self, qdisc: &str) -> u32 {
        self.handles += 1;
        let (device, parent, handle) = (self.device, &self.parent, self.handles);
        self.commands.push(format!("tc qdisc add dev {device} {parent} handle {handle}: {qdisc}"));
        handle
    }

    fn add(&mut self, element: &ElementSpec) -> Result<(), Unsupported> {
        match element {
            ElementSpec::Duplicate { rule, only } => {
                let text = selected(rule, *only, "duplication")?;
                self.option(1, &format!("duplicate {text}"))
            }
            ElementSpec::Loss { rule, only } => {
                let text = lost(rule, *only)?;
                self.option(2, &format!("loss {text}"))
            }
            ElementSpec::Corrupt { rule, only } => {
                let text = selected(rule, *only, "corruption")?;
                self.option(3, &format!("corrupt {text}"))
            }
            ElementSpec::Delay(delay) => self.option(4, &format!("delay {}", time(*delay))),
            ElementSpec::Netem(params) => {
                self.option(4, &netem(params))?;
                self.netem.limit = Some(params.limit);
                Ok(())
            }
            ElementSpec::Link { rate, limit } => self.link(*rate, *limit),
            ElementSpec::LinkWithQdisc {
                capacity: LinkCapacity::Rate(rate),
                limit,
                limits: None,
                queue,
            } => match queue {
                QdiscConfig::DropTail => self.link(*rate, *limit),
                queue => self.managed(*rate, *limit, queue),
            },
            ElementSpec::Slot(SlotParams { min, max, spread, packets, bytes }) => {
                let mut text = match spread {
                    None => format!("slot {} {}", time(*min), time(*max)),
                    Some(SlotSpread { delay, jitter, distribution }) => format!(
                        "slot distribution {} {} {}",
                        distribution_name(*distribution),
                        time(*delay),
                        time(*jitter)
                    ),
                };
                if let Some(packets) = packets {
                    let _ = write!(text, " packets {packets}");
                }
                if let Some(bytes) = bytes {
                    let _ = write!(text, " bytes {}", bytes.get());
                }
                self.option(5, &text)
            }
            ElementSpec::Shaper { rate, burst, limit, framing } => {
                self.shaper(*rate, *burst, *limit, *framing)
            }
            ElementSpec::Policer { rate, burst } => self.policer(*rate, *burst),
            other => Err(Unsupported(format!("tc has no {}", name(other)))),
        }
    }

    /// A drop-tail link: netem's rate, in which the packet in transmission counts.
    fn link(&mut self, rate: Rate, limit: QueueLimit) -> Result<(), Unsupported> {
        let (packets, approximate) = match limit {
            QueueLimit::Packets(packets) => (packets, false),
            QueueLimit::Bytes(bytes) => {
                (u32::try_from(bytes.get().div_ceil(PACKET)).unwrap_or(u32::MAX), true)
            }
        };
        // A netem of its own: its limit is the buffer.
        self.flush();
        if approximate {
            self.note("a buffer of bytes as packets of 1500 bytes");
        }
        self.option(4, &format!("rate {}bit -{ETHERNET_HEADER}", rate.bits_per_second()))?;
        self.netem.limit = Some(packets.saturating_add(1).min(UNLIMITED));
        Ok(())
    }

    /// A rate with an AQM: a class of htb with its qdisc.
    fn managed(
        &mut self,
        rate: Rate,
        limit: QueueLimit,
        queue: &QdiscConfig,
    ) -> Result<(), Unsupported> {
        self.close()?;
        let (packets, bytes) = match limit {
            QueueLimit::Packets(packets) => (u64::from(packets), u64::from(packets) * PACKET),
            QueueLimit::Bytes(bytes) => (bytes.get().div_ceil(PACKET), bytes.get()),
        };
        if matches!(limit, QueueLimit::Bytes(_)) && !matches!(queue, QdiscConfig::Red(_)) {
            self.note("a buffer of bytes as packets of 1500 bytes");
        }
        let queue = discipline(queue, packets, bytes)?;
        self.note("htb counts the Ethernet header: 14 bytes more a packet");
        let handle = self.qdisc("htb default 1");
        let (device, bits) = (self.device, rate.bits_per_second());
        self.commands.push(format!(
            "tc class add dev {device} parent {handle}: classid {handle}:1 htb rate {bits}bit ceil \
             {bits}bit"
        ));
        self.parent = format!("parent {handle}:1");
        self.qdisc(&queue);
        Ok(())
    }

    fn shaper(
        &mut self,
        rate: Rate,
        burst: Bytes,
        limit: QueueLimit,
        framing: Framing,
    ) -> Result<(), Unsupported> {
        self.close()?;
        let frame = frame(framing)?;
        if framing.header == 0 {
            self.note("tbf counts the Ethernet header: 14 bytes more a packet");
        }
        let (bits, burst) = (rate.bits_per_second(), burst.get());
        let (bytes, packets) = match limit {
            QueueLimit::Bytes(bytes) => (bytes.get(), None),
            QueueLimit::Packets(packets) => (u64::from(packets) * PACKET, Some(packets)),
        };
        let handle = self.qdisc(&format!("tbf rate {bits}bit burst {burst} limit {bytes}{frame}"));
        self.parent = format!("parent {handle}:1");
        if let Some(packets) = packets {
            self.qdisc(&format!("pfifo limit {packets}"));
        }
        Ok(())
    }

    fn policer(&mut self, rate: Rate, burst: Bytes) -> Result<(), Unsupported> {
        if self.handles > 0 || self.netem.last > 0 {
            let message = "tc has a policer only before all qdiscs of a device";
            return Err(Unsupported(message.to_owned()));
        }
        let (device, bits, burst) = (self.device, rate.bits_per_second(), burst.get());
        self.commands.push(format!("tc qdisc add dev {device} clsact"));
        self.commands.push(format!(
            "tc filter add dev {device} egress matchall action police rate {bits}bit burst {burst} \
             conform-exceed drop"
        ));
        Ok(())
    }

    /// Begins a qdisc that no other can follow.
    fn close(&mut self) -> Result<(), Unsupported> {
        if self.closed {
            let message = "tc has one shaper or AQM on one device";
            return Err(Unsupported(message.to_owned()));
        }
        self.flush();
        self.closed = true;
        Ok(())
    }
}

/// Writes what tbf counts beside the Ethernet header and the IP packet.
fn frame(framing: Framing) -> Result<String, Unsupported> {
    let Framing { header, overhead, least, cell, cell_overhead } = framing;
    if u64::from(header) != ETHERNET_HEADER && framing != Framing::NONE {
        return Err(Unsupported(format!(
            "tc counts a header of {ETHERNET_HEADER} bytes, the shaper {header}"
        )));
    }
    let mut text = String::new();
    if overhead != 0 {
        let _ = write!(text, " overhead {overhead}");
    }
    if least != 0 {
        let _ = write!(text, " mpu {least}");
    }
    match (cell, cell_overhead) {
        (0, _) => {}
        (48, 5) => text.push_str(" linklayer atm"),
        _ => return Err(Unsupported("tc has cells of ATM only, of 48 and 5 bytes".to_owned())),
    }
    Ok(text)
}

/// The name of a distribution in tc.
const fn distribution_name(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Uniform => "uniform",
        Distribution::Normal => "normal",
        Distribution::Pareto => "pareto",
        Distribution::ParetoNormal => "paretonormal",
    }
}

/// Writes the parameters of an AQM.
fn discipline(queue: &QdiscConfig, packets: u64, bytes: u64) -> Result<String, Unsupported> {
    let ecn = |ecn| if ecn { " ecn" } else { "" };
    Ok(match queue {
        QdiscConfig::DropTail => format!("pfifo limit {packets}"),
        QdiscConfig::CoDel(codel::CoDelParams { target, interval, ecn: marks }) => format!(
            "codel limit {packets} target {} interval {}{}",
            time(*target),
            time(*interval),
            ecn(*marks)
        ),
        QdiscConfig::FqCoDel(fq_codel::FqCoDelParams { codel, quantum, flows }) => format!(
            "fq_codel limit {packets} flows {flows} quantum {} target {} interval {} {}",
            quantum.get(),
            time(codel.target),
            time(codel.interval),
            if codel.ecn { "ecn" } else { "noecn" }
        ),
        QdiscConfig::Pie(pie::PieParams { target, update, burst, ecn: marks }) => {
            if *burst != pie::PieParams::default().burst {
                return Err(Unsupported("pie of Linux has a burst of 150 ms".to_owned()));
            }
            format!(
                "pie limit {packets} target {} tupdate {}{}",
                time(*target),
                time(*update),
                ecn(*marks)
            )
        }
        QdiscConfig::Red(red::RedParams { min, max, probability, gentle, .. }) => {
            if *gentle {
                return Err(Unsupported("red of Linux is not gentle: gentle = false".to_owned()));
            }
            let _ = (min, max, probability, bytes);
            let message = "red of Linux has thresholds of bytes and a burst: see tc-red(8)";
            return Err(Unsupported(message.to_owned()));
        }
    })
}

/// Writes the options of netem's time queue.
pub(super) fn netem(params: &NetemParams) -> String {
    let mut text = String::new();
    if !params.delay.is_zero() || !params.jitter.is_zero() {
        let _ = write!(text, "delay {}", time(params.delay));
    }
    if !params.jitter.is_zero() {
        let _ = write!(text, " {}", time(params.jitter));
        if params.correlation.num() > 0 {
            let _ = write!(text, " {}", percent(params.correlation));
        }
        let name = match params.distribution {
            Distribution::Uniform => None,
            Distribution::Normal => Some("normal"),
            Distribution::Pareto => Some("pareto"),
            Distribution::ParetoNormal => Some("paretonormal"),
        };
        if let Some(name) = name {
            let _ = write!(text, " distribution {name}");
        }
    }
    if let Some(reorder) = params.reorder {
        let _ = write!(text, " reorder {}", percent(reorder.share));
        if reorder.correlation.num() > 0 {
            let _ = write!(text, " {}", percent(reorder.correlation));
        }
        if reorder.gap > 1 {
            let _ = write!(text, " gap {}", reorder.gap);
        }
    }
    if let Some(rate) = params.rate {
        let overhead = i64::from(rate.overhead) - ETHERNET_HEADER as i64;
        let _ = write!(text, " rate {}bit", rate.rate.bits_per_second());
        if overhead != 0 || rate.cell > 0 {
            let _ = write!(text, " {overhead}");
        }
        if rate.cell > 0 {
            let _ = write!(text, " {} {}", rate.cell, rate.cell_overhead);
        }
    }
    text.trim_start().to_owned()
}

/// Writes a random selection with its correlation.
fn selected(rule: &SelectionRule, only: PacketClass, what: &str) -> Result<String, Unsupported> {
    if only != PacketClass::All {
        return Err(Unsupported(format!("tc has no {what} of one class of packets")));
    }
    match rule {
        SelectionRule::Share(share) => Ok(percent(*share)),
        SelectionRule::Correlated { share, correlation } => {
            Ok(format!("{} {}", percent(*share), percent(*correlation)))
        }
        _ => Err(Unsupported(format!("tc has no {what} of chosen packets"))),
    }
}

fn lost(rule: &SelectionRule, only: PacketClass) -> Result<String, Unsupported> {
    match rule {
        SelectionRule::GilbertElliott(ge) if only == PacketClass::All => Ok(format!(
            "gemodel {} {} {} {}",
            percent(ge.p),
            percent(ge.r),
            percent(complement(ge.h)),
            percent(complement(ge.k)),
        )),
        SelectionRule::FourState(chain) if only == PacketClass::All => {
            let p = [chain.p13, chain.p31, chain.p32, chain.p23, chain.p14].map(percent);
            Ok(format!("state {}", p.join(" ")))
        }
        rule => selected(rule, only, "loss"),
    }
}

fn complement(share: Ratio) -> Ratio {
    let rest = share.den().saturating_sub(share.num());
    Ratio::new(rest, share.den()).unwrap_or(Ratio::ZERO)
}

/// Writes a fraction as a percentage of at most 10 decimals.
fn percent(share: Ratio) -> String {
    const UNIT: u128 = 10_000_000_000;
    let scaled = u128::from(share.num()) * 100 * UNIT / u128::from(share.den());
    let (whole, part) = (scaled / UNIT, scaled % UNIT);
    let text = format!("{whole}.{part:010}");
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn time(span: Duration) -> String {
    match span.as_nanos() {
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

fn name(element: &ElementSpec) -> &'static str {
    match element {
        ElementSpec::LinkWithQdisc { .. } => "link that changes or follows a trace",
        ElementSpec::ChangingDelay(_) => "delay that changes during the run",
        ElementSpec::Jitter { .. } => {
            "random delay that keeps the order: the element `netem` has one that reorders"
        }
        ElementSpec::WifiJitter(_) => "random delay of a Wi-Fi channel",
        ElementSpec::Reverse(_) | ElementSpec::Displace { .. } | ElementSpec::Late { .. } => {
            "reordering of this kind"
        }
        ElementSpec::Thin { .. } => "ACK filter",
        ElementSpec::Outage { .. } => "outages",
        ElementSpec::Mtu { .. } => "MTU: set it with `ip link set dev DEVICE mtu BYTES`",
        ElementSpec::Strip(_) => "box that removes options",
        ElementSpec::Forget { .. } => "box that forgets connections",
        ElementSpec::Reset(_) => "box that resets connections",
        ElementSpec::Shared(_) => "elements that several paths share",
        _ => "such element",
    }
}
