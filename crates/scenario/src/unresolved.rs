//! Elements whose buffer may be a multiple of the path's bandwidth-delay product (`1bdp`), and their sizes.

use net::link::QueueLimit;
use sim::scenario::{ElementSpec, Framing, LinkCapacity, QdiscConfig, Schedule};
use units::{Bytes, Duration, Rate};

use super::keys::{Located, ScenarioReader};
use super::shared::SharedElements;
use super::source::{SpannedError, TextSpan};
use crate::units_text::BufferSize;

/// An element whose `1bdp` is not resolved yet.
pub(super) enum UnresolvedElement {
    Resolved(ElementSpec),
    Link { capacity: LinkCapacity, buffer: UnresolvedBuffer, queue: QdiscConfig },
    Shaper { rate: Rate, burst: Bytes, buffer: Located<BufferSize>, framing: Framing },
}

/// The capacity of a queue whose `1bdp` is not resolved yet.
pub(super) enum UnresolvedBuffer {
    Constant(Located<BufferSize>),
    Changing(Schedule<Located<BufferSize>>),
}

impl UnresolvedElement {
    /// Returns whether this is the shared element with that index.
    pub(super) fn is_shared(&self, index: usize) -> bool {
        matches!(self, Self::Resolved(ElementSpec::Shared(other)) if *other == index)
    }

    /// Delay that the element adds to the round-trip time of `1bdp`.
    pub(super) fn delay(&self, shared: &SharedElements) -> Duration {
        let span = |element: &ElementSpec| match element {
            ElementSpec::Delay(span) => *span,
            ElementSpec::Netem(params) => params.delay,
            ElementSpec::ChangingDelay(span) => span.first(),
            _ => Duration::ZERO,
        };
        match self {
            Self::Resolved(ElementSpec::Shared(index)) => {
                shared.get(*index).map_or(Duration::ZERO, span)
            }
            Self::Resolved(element) => span(element),
            Self::Link { .. } | Self::Shaper { .. } => Duration::ZERO,
        }
    }

    /// Resolves `1bdp` for a path with that round-trip time.
    pub(super) fn resolve(
        self,
        round_trip: Option<Duration>,
        reader: &mut ScenarioReader,
    ) -> Option<ElementSpec> {
        Some(match self {
            Self::Resolved(element) => element,
            Self::Link { capacity, buffer, queue } => {
                let (limit, limits) = match buffer {
                    UnresolvedBuffer::Constant(buffer) => {
                        (limit(capacity.mean(), buffer, round_trip, reader)?, None)
                    }
                    UnresolvedBuffer::Changing(buffers) => {
                        let steps: Option<Vec<_>> = buffers
                            .steps()
                            .iter()
                            .map(|&(at, buffer)| {
                                let limit = limit(capacity.mean(), buffer, round_trip, reader);
                                Some((at, limit?))
                            })
                            .collect();
                        let limits = Schedule::new(steps?, buffers.period()).ok()?;
                        (limits.first(), Some(limits))
                    }
                };
                match (capacity, limits, queue) {
                    (LinkCapacity::Rate(rate), None, QdiscConfig::DropTail) => {
                        ElementSpec::Link { rate, limit }
                    }
                    (capacity, limits, queue) => {
                        ElementSpec::LinkWithQdisc { capacity, limit, limits, queue }
                    }
                }
            }
            Self::Shaper { rate, burst, buffer, framing } => {
                let limit = limit(rate, buffer, round_trip, reader)?;
                ElementSpec::Shaper { rate, burst, limit, framing }
            }
        })
    }
}

fn limit(
    rate: Rate,
    buffer: Located<BufferSize>,
    round_trip: Option<Duration>,
    reader: &mut ScenarioReader,
) -> Option<QueueLimit> {
    let times = match buffer.value {
        BufferSize::Size(size) => return Some(QueueLimit::Bytes(size)),
        BufferSize::Packets(packets) => return Some(QueueLimit::Packets(packets)),
        BufferSize::Bdp(times) => times,
    };
    let no_room = |place: TextSpan, message: String, reader: &mut ScenarioReader| {
        let hint = "give it in bytes or packets, such as \"64KiB\" or \"100p\"".to_owned();
        reader.report(SpannedError::new(place, message).hint(hint));
        None
    };
    let Some(round_trip) = round_trip else {
        let message = "a shared element can be on paths of several delays".to_owned();
        return no_room(buffer.span, message, reader);
    };
    match Bytes(times.of(rate.bytes_in(round_trip).get())) {
        Bytes::ZERO => {
            let message =
                format!("this buffer has zero capacity: the delays of the path are {round_trip}");
            no_room(buffer.span, message, reader)
        }
        size => Some(QueueLimit::Bytes(size)),
    }
}
