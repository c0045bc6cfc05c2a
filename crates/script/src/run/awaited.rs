//! A packet that the script awaits: waits for it, joins its parts, and judges its time.

use packet::{Flags, Segment};
use units::{Duration, Instant};

use super::wording;
use super::world::Sent;
use super::{Result, Runner, Stop};
use crate::ast::{Body, Event, Packet, Tcp, When};

/// How long a packet is waited for that may come at any time.
const LONGEST: Duration = Duration::from_secs(100_000);

/// When a packet may come.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    from: Instant,
    to: Instant,
    slack: Duration,
}

impl Runner<'_> {
    pub(super) fn await_packet(&mut self, event: &Event, packet: &Packet) -> Result<()> {
        let tcp = match &packet.body {
            Body::Tcp(tcp) => tcp,
            Body::Other(what) => {
                return self.unsupported(what.span, format!("`{}` is not supported", what.value));
            }
        };
        if tcp.ace.is_some() {
            return self.unsupported(tcp.flags.span, "accurate ECN is not supported");
        }
        let allowed = self.allowed(event.when.value);
        let until =
            allowed.map_or(self.world.now() + LONGEST, |allowed| allowed.to + allowed.slack);
        let Some(first) = self.next_sent(until)? else {
            return Err(Stop::Failed(self.nothing_came(event, allowed)));
        };
        let (whole, last) = self.joined(first, tcp, until)?;
        self.compare(packet, tcp, &whole, self.world.script_time(first.at))?;
        if let Some(allowed) = allowed {
            self.judge_time(event, &allowed, first.at, last)?;
        }
        self.base = last;
        self.retry()
    }

    /// The times in which a packet may come; `None` for any.
    fn allowed(&self, when: When) -> Option<Allowed> {
        let (from, to) = match when {
            When::Any => return None,
            When::Absolute(at) => (self.world.at(at), self.world.at(at)),
            When::Relative(after) => (self.base + after, self.base + after),
            When::Between { relative, from, to } | When::Blocking { relative, from, to } => {
                let base = if relative { self.base } else { self.world.at(Duration::ZERO) };
                (base + from, base + to)
            }
        };
        // An eighth of what has passed since the event before, where that is more.
        let eighth = Duration::from_nanos(to.since(self.base).as_nanos() / 8);
        Some(Allowed { from, to, slack: self.rules.tolerance.max(eighth) })
    }

    /// The next packet that was sent or will be by `until`.
    fn next_sent(&mut self, until: Instant) -> Result<Option<Sent>> {
        loop {
            if let Some(sent) = self.world.sent.pop_front() {
                return Ok(Some(sent));
            }
            if !self.world.step(until) {
                return Ok(None);
            }
            self.retry()?;
        }
    }

    /// Consecutive data packets as one, up to the awaited length: all but the last of one size, with
    /// one acknowledgment number and the same options. Tells when the last one left, too.
    fn joined(&mut self, first: Sent, tcp: &Tcp, until: Instant) -> Result<(Segment, Instant)> {
        let mut whole = first.segment;
        let mut last = first.at;
        let size = first.segment.payload;
        let mut previous = size;
        let joins = !self.rules.strict_segments
            && whole.payload > 0
            && whole.seq.0 == tcp.seq.value
            && !whole.flags.has(Flags::SYN);
        while joins
            && whole.payload < tcp.len.value
            && !whole.flags.has(Flags::FIN)
            && previous == size
        {
            let Some(next) = self.next_sent(until)? else { break };
            let follows = next.segment.seq.0 == whole.seq.0.wrapping_add(whole.payload)
                && next.segment.payload > 0
                && next.segment.payload <= size
                && next.segment.ack == whole.ack
                && next.segment.options == whole.options
                && next.segment.timestamps == whole.timestamps;
            if !follows {
                self.world.sent.push_front(next);
                break;
            }
            previous = next.segment.payload;
            whole.payload += next.segment.payload;
            let kept = whole.flags.without(Flags::FIN | Flags::PSH);
            whole.flags = kept | next.segment.flags;
            whole.window = next.segment.window;
            last = next.at;
        }
        Ok((whole, last))
    }

    fn judge_time(
        &self,
        event: &Event,
        allowed: &Allowed,
        first: Instant,
        last: Instant,
    ) -> Result<()> {
        let early = first + allowed.slack < allowed.from;
        let late = last > allowed.to + allowed.slack;
        if !early && !late {
            return Ok(());
        }
        let message =
            if early { "the packet was sent too early" } else { "the packet was sent too late" };
        let at = self.world.script_time(if early { first } else { last });
        let error = self.at(event.when.span, message).expected(self.times(allowed));
        let error = error.found(format!("{} s", wording::seconds(at)));
        Err(Stop::Failed(
            error.hint("times are counted from the beginning of the script".to_owned()),
        ))
    }

    fn times(&self, allowed: &Allowed) -> String {
        let text = |at: Instant| wording::seconds(self.world.script_time(at));
        let span = if allowed.from == allowed.to {
            format!("{} s", text(allowed.from))
        } else {
            format!("{} to {} s", text(allowed.from), text(allowed.to))
        };
        format!("{span} (± {} s)", wording::seconds(allowed.slack))
    }

    fn nothing_came(&self, event: &Event, allowed: Option<Allowed>) -> crate::Diagnostic {
        let error = self.at(event.span, "no packet was sent");
        let error = match allowed {
            Some(allowed) => error.expected(format!("this one at {}", self.times(&allowed))),
            None => error.expected("this one"),
        };
        let next = self.world.next_deadline().map(|(at, purpose)| {
            let at = wording::seconds(self.world.script_time(at));
            let timer = purpose.name().replace('_', " ");
            format!("the next timer ({timer}) fires at {at} s")
        });
        error.hint(next.or(Some("no timer runs: nothing will be sent by itself".to_owned())))
    }
}
