//! One element of the network: its kind, and what the world asks of it.

use machine::{Element as _, PacketAction, PacketId, PacketVerdict, PacketView};
use net::ack_filter::AckFilter;
use net::corrupt::Corrupt;
use net::delay::{ChangingDelay, Delay};
use net::duplicate::Duplicate;
use net::forget::Forget;
use net::jitter::Jitter;
use net::link::Link;
use net::loss::Loss;
use net::mtu::MtuLimit;
use net::netem::Netem;
use net::outage::Outage;
use net::qdisc_link::QdiscLink;
use net::reorder::displace::Displace;
use net::reorder::reverse::Reverse;
use net::reorder::selective_delay::SelectiveDelay;
use net::reset::Reset;
use net::selection::RandomSource;
use net::slot::Slot;
use net::strip::Strip;
use net::token_bucket::{Policer, Shaper};
use net::wifi::WifiJitter;
use units::{Bytes, Instant};

use crate::scenario::ElementSpec;

/// An element of the network.
#[derive(Debug)]
pub(crate) struct ElementNode {
    stage: ElementKind,
    /// Time of the element's entry in the event queue.
    pub(crate) armed: Option<Instant>,
    simple: bool,
    /// The element never holds a packet.
    never_holds: bool,
}

/// Result of offering a packet to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcceptOutcome {
    /// The packet is queued after others.
    Enqueued,
    /// The packet is queued, and the element expects a wake-up at this time.
    Scheduled(Instant),
    /// Verdict of the element; its next wake-up must be queried.
    ByVerdict(PacketVerdict),
}

/// The most frequent kinds of element inline, the others boxed.
#[derive(Debug)]
#[repr(u8)]
pub(super) enum ElementKind {
    Link(Link),
    Delay(Delay),
    Other(Box<BoxedElement>),
}

/// At most two cache lines: a world has several per flow.
const _: () = assert!(size_of::<ElementNode>() <= 128);

#[derive(Debug)]
pub(super) enum BoxedElement {
    Managed(QdiscLink),
    ChangingDelay(ChangingDelay),
    Jitter(Jitter),
    Netem(Netem),
    WifiJitter(WifiJitter),
    Slot(Slot),
    Loss(Loss),
    Duplicate(Duplicate),
    Corrupt(Corrupt),
    Reverse(Reverse),
    Displace(Displace),
    Late(SelectiveDelay),
    Thin(AckFilter),
    Outage(Outage),
    Policer(Policer),
    Shaper(Shaper),
    Mtu(MtuLimit),
    Strip(Strip),
    Forget(Forget),
    Reset(Reset),
}

/// Dispatches a call to the element.
macro_rules! ask {
    ($other:expr, $element:ident => $question:expr) => {
        match $other {
            BoxedElement::Managed($element) => $question,
            BoxedElement::ChangingDelay($element) => $question,
            BoxedElement::Jitter($element) => $question,
            BoxedElement::Netem($element) => $question,
            BoxedElement::WifiJitter($element) => $question,
            BoxedElement::Slot($element) => $question,
            BoxedElement::Loss($element) => $question,
            BoxedElement::Duplicate($element) => $question,
            BoxedElement::Corrupt($element) => $question,
            BoxedElement::Reverse($element) => $question,
            BoxedElement::Displace($element) => $question,
            BoxedElement::Late($element) => $question,
            BoxedElement::Thin($element) => $question,
            BoxedElement::Outage($element) => $question,
            BoxedElement::Policer($element) => $question,
            BoxedElement::Shaper($element) => $question,
            BoxedElement::Mtu($element) => $question,
            BoxedElement::Strip($element) => $question,
            BoxedElement::Forget($element) => $question,
            BoxedElement::Reset($element) => $question,
        }
    };
}

impl machine::Element for BoxedElement {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        ask!(self, element => element.accept(now, packet, view))
    }

    fn next_wake(&self) -> Option<Instant> {
        ask!(self, element => element.next_wake())
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        ask!(self, element => element.wake(now))
    }

    fn next_action(&mut self) -> Option<PacketAction> {
        ask!(self, element => element.next_action())
    }
}

impl ElementKind {
    /// Returns whether it ever holds a packet.
    fn holds(&self) -> bool {
        let Self::Other(other) = self else { return true };
        !matches!(
            **other,
            BoxedElement::Loss(_)
                | BoxedElement::Duplicate(_)
                | BoxedElement::Corrupt(_)
                | BoxedElement::Mtu(_)
                | BoxedElement::Strip(_)
                | BoxedElement::Forget(_)
                | BoxedElement::Reset(_)
        )
    }

    /// Creates an element that draws no random numbers, so needs no stream name.
    pub(super) fn plain(element: &ElementSpec) -> Option<Self> {
        match element {
            ElementSpec::Link { rate, limit } => Some(Self::Link(Link::new(*rate, *limit))),
            ElementSpec::Delay(span) => Some(Self::Delay(Delay::new(*span))),
            _ => None,
        }
    }

    /// Returns `None` for a reference to a shared element, which has no state of its own.
    pub(super) fn new(element: &ElementSpec, random_source: &RandomSource<'_>) -> Option<Self> {
        let other = match element {
            ElementSpec::Link { .. } | ElementSpec::Delay(_) => return Self::plain(element),
            ElementSpec::Shared(_) => return None,
            ElementSpec::LinkWithQdisc { capacity, limit, limits, queue } => {
                let link = QdiscLink::new(capacity.clone(), *limit, *queue, random_source);
                BoxedElement::Managed(link.with_limits(limits.clone()))
            }
            ElementSpec::ChangingDelay(span) => {
                BoxedElement::ChangingDelay(ChangingDelay::new(span.clone()))
            }
            ElementSpec::WifiJitter(average) => {
                BoxedElement::WifiJitter(WifiJitter::new(average.clone(), random_source))
            }
            ElementSpec::Slot(params) => BoxedElement::Slot(Slot::new(*params, random_source)),
            ElementSpec::Netem(params) => BoxedElement::Netem(Netem::new(*params, random_source)),
            ElementSpec::Jitter { most } => BoxedElement::Jitter(Jitter::new(*most, random_source)),
            ElementSpec::Loss { rule, only } => {
                BoxedElement::Loss(Loss::new(rule, *only, random_source))
            }
            ElementSpec::Duplicate { rule, only } => {
                BoxedElement::Duplicate(Duplicate::new(rule, *only, random_source))
            }
            ElementSpec::Corrupt { rule, only } => {
                BoxedElement::Corrupt(Corrupt::new(rule, *only, random_source))
            }
            ElementSpec::Reverse(params) => BoxedElement::Reverse(Reverse::new(*params)),
            ElementSpec::Displace { rule, places, timeout, only } => {
                BoxedElement::Displace(Displace::new(rule, *places, *timeout, *only, random_source))
            }
            ElementSpec::Late { rule, by, only } => {
                BoxedElement::Late(SelectiveDelay::new(rule, *by, *only, random_source))
            }
            ElementSpec::Thin { bytes, timeout } => {
                BoxedElement::Thin(AckFilter::new(*bytes, *timeout))
            }
            ElementSpec::Outage { from, until, period, during } => {
                let (from, until) = (Instant::ZERO + *from, Instant::ZERO + *until);
                BoxedElement::Outage(Outage::new(from, until, *during).repeated(*period))
            }
            ElementSpec::Policer { rate, burst } => {
                BoxedElement::Policer(Policer::new(*rate, *burst))
            }
            ElementSpec::Shaper { rate, burst, limit, framing } => {
                BoxedElement::Shaper(Shaper::new(*rate, *burst, *limit).framed(*framing))
            }
            ElementSpec::Mtu { size, from, icmp } => {
                BoxedElement::Mtu(MtuLimit::new(*size, Instant::ZERO + *from, *icmp))
            }
            ElementSpec::Strip(offers) => BoxedElement::Strip(Strip::new(*offers)),
            ElementSpec::Forget { idle, resets } => {
                BoxedElement::Forget(Forget::new(*idle, *resets))
            }
            ElementSpec::Reset(trigger) => BoxedElement::Reset(Reset::new(*trigger)),
        };
        Some(Self::Other(Box::new(other)))
    }
}

impl ElementNode {
    pub(super) fn new(stage: ElementKind) -> Self {
        let simple = matches!(stage, ElementKind::Link(_) | ElementKind::Delay(_));
        Self { never_holds: !stage.holds(), stage, armed: None, simple }
    }

    /// An element that several routes pass through.
    pub(super) fn shared(stage: ElementKind) -> Self {
        Self { simple: false, ..Self::new(stage) }
    }

    /// Returns whether the element is FIFO and on a single route. Then no packet reaches it before
    /// a departed packet, and all its effects, have been processed: packets only move forward, and
    /// their effects start on other routes.
    #[inline(always)]
    pub(crate) const fn is_simple(&self) -> bool {
        self.simple
    }

    /// Offers a packet to the element; `view` computes the view for elements that read it.
    #[inline(always)]
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        id: PacketId,
        size: Bytes,
        view: impl FnOnce() -> PacketView,
    ) -> AcceptOutcome {
        match &mut self.stage {
            ElementKind::Link(link) => {
                if !link.take(now, id, size) {
                    return AcceptOutcome::ByVerdict(PacketVerdict::Dropped);
                }
            }
            ElementKind::Delay(delay) => delay.take(now, id),
            ElementKind::Other(other) => {
                return AcceptOutcome::ByVerdict(other.accept(now, id, &view()));
            }
        }
        if self.armed.is_some() {
            return AcceptOutcome::Enqueued;
        }
        self.armed = self.next_wake();
        self.armed.map_or(AcceptOutcome::Enqueued, AcceptOutcome::Scheduled)
    }

    /// Returns whether the event that fired is the one that the element expects, and clears it.
    #[inline(always)]
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        // A stale event was superseded by an earlier one, and the element has been scheduled again.
        let due = self.armed == Some(now);
        if due {
            self.armed = None;
        }
        due
    }

    /// Returns the first packet of a simple element, if it leaves at or before `now`, and the next one
    /// with its time: the element expects a wake-up then.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        now: Instant,
    ) -> Option<(PacketId, Option<(Instant, PacketId)>)> {
        let (packet, next) = match &mut self.stage {
            ElementKind::Link(link) => (link.wake(now)?, link.first()),
            ElementKind::Delay(delay) => (delay.wake(now)?, delay.first()),
            ElementKind::Other(_) => return None,
        };
        self.armed = next.map(|(at, _)| at);
        Some((packet, next))
    }

    /// Returns the packet that leaves a plain link or a fixed delay next, and when.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<(Instant, PacketId)> {
        match &self.stage {
            ElementKind::Link(link) => link.first(),
            ElementKind::Delay(delay) => delay.first(),
            ElementKind::Other(_) => None,
        }
    }

    /// Returns whether it never holds a packet.
    #[inline(always)]
    pub(crate) const fn never_holds(&self) -> bool {
        self.never_holds
    }

    /// Returns whether arriving packets are always queued after earlier ones.
    #[inline(always)]
    pub(crate) const fn keeps_order(&self) -> bool {
        matches!(self.stage, ElementKind::Link(_) | ElementKind::Delay(_))
    }

    #[inline(always)]
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        match &self.stage {
            ElementKind::Link(link) => link.next_wake(),
            ElementKind::Delay(delay) => delay.next_wake(),
            ElementKind::Other(other) => other.next_wake(),
        }
    }

    /// Returns a packet that leaves at or before `now`.
    pub(crate) fn wake(&mut self, now: Instant) -> Option<PacketId> {
        match &mut self.stage {
            ElementKind::Link(link) => link.wake(now),
            ElementKind::Delay(delay) => delay.wake(now),
            ElementKind::Other(other) => {
                if other.next_wake().is_none_or(|at| at > now) {
                    return None;
                }
                other.wake(now)
            }
        }
    }

    /// Returns the next drop or mark caused by the last arrival or departure.
    #[inline(always)]
    pub(crate) fn next_fate(&mut self) -> Option<PacketAction> {
        match &mut self.stage {
            ElementKind::Link(_) | ElementKind::Delay(_) => None,
            ElementKind::Other(other) => other.next_action(),
        }
    }
}

/// Kind of an element, as used in the names of its random streams.
pub(super) fn kind(element: &ElementSpec) -> &'static str {
    match element {
        ElementSpec::Link { .. } | ElementSpec::LinkWithQdisc { .. } => "link",
        ElementSpec::Delay(_) | ElementSpec::ChangingDelay(_) => "delay",
        ElementSpec::Jitter { .. } => "jitter",
        ElementSpec::Netem(_) => "netem",
        ElementSpec::WifiJitter(_) => "wifi",
        ElementSpec::Slot(_) => "slot",
        ElementSpec::Loss { .. } => "loss",
        ElementSpec::Duplicate { .. } => "duplicate",
        ElementSpec::Corrupt { .. } => "corrupt",
        ElementSpec::Reverse(_) => "reverse",
        ElementSpec::Displace { .. } => "displace",
        ElementSpec::Late { .. } => "late",
        ElementSpec::Thin { .. } => "thin",
        ElementSpec::Outage { .. } => "outage",
        ElementSpec::Policer { .. } => "policer",
        ElementSpec::Shaper { .. } => "shaper",
        ElementSpec::Mtu { .. } => "mtu",
        ElementSpec::Strip(_) => "strip",
        ElementSpec::Forget { .. } => "forget",
        ElementSpec::Reset(_) => "reset",
        ElementSpec::Shared(_) => "shared",
    }
}
