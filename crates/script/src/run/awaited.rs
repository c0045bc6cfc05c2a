//! Expected packets: waits for them, coalesces data, and checks the time.

use packet::{Flags, Segment};
use units::{Duration, Instant};

use super::wording;
use super::world::SentPacket;
use super::{Result, Runner, ScriptStop};
use crate::ast::{Body, ScriptEvent, ScriptPacket, ScriptSegment, When};

/// Maximum wait for a packet without a time limit.
const LONGEST: Duration = Duration::from_secs(100_000);

/// Times at which a packet is allowed.
#[derive(Debug, Clone, Copy)]
struct TimeWindow {
    from: Instant,
    to: Instant,
    slack: Duration,
}

impl Runner<'_> {
    pub(super) fn await_packet(
        &mut self,
        event: &ScriptEvent,
        packet: &ScriptPacket,
    ) -> Result<()> {
        let tcp = match &packet.body {
            Body::Tcp(tcp) => tcp,
            Body::Icmp(message) => {
                return self.unsupported(message.kind.span, "`icmp` is not supported");
            }
            Body::Other(what) => {
                return self.unsupported(what.span, format!("`{}` is not supported", what.value));
            }
        };
        self.check_absolute(tcp, self.world.real.is_none())?;
        self.check_fast_open(&tcp.options.value)?;
        let allowed = self.allowed(event.when.value);
        let until =
            allowed.map_or(self.world.now() + LONGEST, |allowed| allowed.to + allowed.slack);
        let Some(first) = self.next_sent(until)? else {
            self.check_real(event.span)?;
            return Err(ScriptStop::Failed(self.no_packet_error(event, allowed)));
        };
        let header = first.header;
        self.check_header(&packet.ip, header)?;
        let (whole, last) = self.coalesce(first, tcp, until)?;
        let at = self.world.script_time(first.at);
        self.compare(packet, tcp, (&whole, header.unwrap_or_default()), at)?;
        if let Some(allowed) = allowed {
            self.check_time(event, &allowed, last)?;
        }
        self.base = last;
        self.retry()
    }

    /// Returns the times at which a packet is allowed; `None` for any.
    fn allowed(&self, when: When) -> Option<TimeWindow> {
        let (from, to) = match when {
            When::Any => return None,
            When::Absolute(at) => (self.world.at(at), self.world.at(at)),
            When::Relative(after) => (self.base + after, self.base + after),
            When::Between { relative, from, to } | When::Blocking { relative, from, to } => {
                let base = if relative { self.base } else { self.world.at(Duration::ZERO) };
                (base + from, base + to)
            }
        };
        // An eighth of the time since the previous event, if that is more.
        let eighth = Duration::from_nanos(to.since(self.base).as_nanos() / 8);
        Some(TimeWindow { from, to, slack: self.rules.tolerance.max(eighth) })
    }

    /// Returns the next packet sent by `until`.
    fn next_sent(&mut self, until: Instant) -> Result<Option<SentPacket>> {
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

    /// Coalesces consecutive data packets up to the expected length: all but the last of one size,
    /// with the same acknowledgment number and options. Also returns the time of the last one.
    fn coalesce(
        &mut self,
        first: SentPacket,
        tcp: &ScriptSegment,
        until: Instant,
    ) -> Result<(Segment, Instant)> {
        let mut whole = first.segment;
        let mut last = first.at;
        let size = first.segment.payload;
        let mut previous = size;
        let joins = !self.rules.strict_segments
            && whole.payload > 0
            && (whole.seq.0 == tcp.seq.value || tcp.any_seq)
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
                && next.segment.window == whole.window
                && next.segment.options == whole.options
                && next.segment.timestamps == whole.timestamps
                && next.header == first.header;
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

    /// Checks the time of a packet, the last one if several make up what the script expects.
    fn check_time(&self, event: &ScriptEvent, allowed: &TimeWindow, last: Instant) -> Result<()> {
        let early = last + allowed.slack < allowed.from;
        let late = last > allowed.to + allowed.slack;
        if !early && !late {
            return Ok(());
        }
        let message =
            if early { "the packet was sent too early" } else { "the packet was sent too late" };
        let at = self.world.script_time(last);
        let error = self.at(event.when.span, message).expected(self.times(allowed));
        let error = error.found(format!("{} s", wording::seconds(at)));
        Err(ScriptStop::Failed(
            error.hint("times are counted from the beginning of the script".to_owned()),
        ))
    }

    fn times(&self, allowed: &TimeWindow) -> String {
        let text = |at: Instant| wording::seconds(self.world.script_time(at));
        let span = if allowed.from == allowed.to {
            format!("{} s", text(allowed.from))
        } else {
            format!("{} to {} s", text(allowed.from), text(allowed.to))
        };
        format!("{span} (± {} s)", wording::seconds(allowed.slack))
    }

    fn no_packet_error(
        &self,
        event: &ScriptEvent,
        allowed: Option<TimeWindow>,
    ) -> crate::Diagnostic {
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
        if self.world.real.is_some() {
            return error;
        }
        error.hint(next.or(Some("no timer runs: nothing will be sent by itself".to_owned())))
    }
}
