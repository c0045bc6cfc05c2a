//! Logs of both endpoints of a QUIC connection: loss, delay and ACK delay between them.

use core::fmt::Write;

use diagnose::rules::{many, time};
use serde::Serialize;
use units::Duration;

use super::DiagnosisReport;
use crate::inputs::{ClockOrigin, QuicConnection, QuicPair, QuicTransit};

/// A connection in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LogRef {
    pub(super) file: String,
    pub(super) connection: u32,
}

impl LogRef {
    pub(super) fn is(&self, file: &str, connection: u32) -> bool {
        self.file == file && self.connection == connection
    }
}

/// The comparison of two logs of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct QuicPairReport {
    client: LogRef,
    server: LogRef,
    same_group: bool,
    /// What the clocks count from: `time-of-day`, if both logs have it, or `log-start`.
    clock_origin: &'static str,
    /// The delays are by the time of day of both logs, which no packet contradicts.
    #[serde(skip)]
    same_day: bool,
    /// Seconds by which the server's clock is ahead of the client's, both counted from their origins; `None` if only
    /// packets of one direction are in both.
    clock_ahead_s: Option<f64>,
    /// Clock drift, in seconds per second.
    clock_drift: Option<f64>,
    /// Shortest round trip; bounds the error of the offset to half of it.
    round_trip_s: Option<f64>,
    from_client: QuicTransitJson,
    from_server: QuicTransitJson,
    partial: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct QuicTransitJson {
    packets: u64,
    lost: u64,
    declared_lost: u64,
    falsely_declared_lost: u64,
    arrived_before_declared: u64,
    reordered: u64,
    /// Sent when the receiver's log had ended.
    after_end: u64,
    unlogged: u64,
    delays_s: Option<[f64; 4]>,
    ack_delays_s: Option<[f64; 4]>,
    /// 99th percentile of the delay less the minimum.
    queue_s: Option<f64>,
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// A time; one below 0 shows that the clocks are not aligned as they are taken.
fn span(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "-" } else { "" };
    format!("{sign}{}", time(Duration::from_nanos((seconds.abs() * 1e9) as u64)))
}

impl QuicTransitJson {
    fn of(transit: &QuicTransit) -> Self {
        Self {
            packets: transit.packets,
            lost: transit.lost,
            declared_lost: transit.declared_lost,
            falsely_declared_lost: transit.falsely_declared,
            arrived_before_declared: transit.arrived_before,
            reordered: transit.reordered,
            after_end: transit.open,
            unlogged: transit.unlogged,
            delays_s: transit.delays.map(|delays| delays.map(seconds)),
            ack_delays_s: transit.ack_delays.map(|delays| delays.map(seconds)),
            queue_s: transit.queue().map(seconds),
        }
    }

    /// Lines of text about the packets of `sender`, which `receiver` acknowledges.
    fn text(&self, sender: &str, receiver: &str, out: &mut String) {
        if self.packets + self.unlogged == 0 {
            return;
        }
        let declared = self.declared_lost + self.falsely_declared_lost;
        let _ = write!(
            out,
            "  from the {sender}  {}: {} lost; {declared} declared lost, {} of them arrived",
            many(self.packets, "packet"),
            self.lost,
            self.falsely_declared_lost
        );
        if self.arrived_before_declared > 0 {
            let _ = write!(out, " ({} before they were declared)", self.arrived_before_declared);
        }
        let counts = [
            (self.reordered, "reordered"),
            (self.after_end, "sent when the other log had ended"),
            (self.unlogged, "only in the receiver's log"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            let _ = write!(out, "; {count} {what}");
        }
        out.push('\n');
        let delays = [(self.delays_s, "one-way delay"), (self.ack_delays_s, "ACK delay")];
        for (delays, what) in delays {
            let Some([least, middle, late, most]) = delays.map(|delays| delays.map(span)) else {
                continue;
            };
            let what = match what {
                "ACK delay" => format!("delay of the {receiver}'s ACKs"),
                what => what.to_owned(),
            };
            let _ = writeln!(
                out,
                "                   {what} {least} at least, {middle} median, {late} 99th percentile, \
                 {most} at most"
            );
        }
    }
}

impl QuicPairReport {
    pub(super) fn of(
        pair: &QuicPair,
        connections: &[QuicConnection],
        names: &[String],
    ) -> Option<Self> {
        let log = |index: usize| {
            let one = connections.get(index)?;
            let file = names.get(one.file)?.clone();
            Some(LogRef { file, connection: one.number })
        };
        let [from_client, from_server] = pair.transits.each_ref().map(QuicTransitJson::of);
        Some(Self {
            client: log(pair.logs[0])?,
            server: log(pair.logs[1])?,
            same_group: pair.same_group,
            clock_origin: match pair.origin {
                ClockOrigin::TimeOfDay | ClockOrigin::OtherTimeOfDay => "time-of-day",
                ClockOrigin::LogStart => "log-start",
            },
            same_day: pair.origin == ClockOrigin::TimeOfDay,
            clock_ahead_s: pair.clock.map(|clock| seconds(clock.ahead)),
            clock_drift: pair.clock.and_then(|clock| clock.drift).map(|drift| drift / 1e9),
            round_trip_s: pair.clock.map(|clock| seconds(clock.round_trip)),
            from_client,
            from_server,
            partial: pair.is_partial,
        })
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.client.file == file || self.server.file == file
    }

    pub(super) fn concerns(&self, file: &str, connection: u32) -> bool {
        self.client.is(file, connection) || self.server.is(file, connection)
    }

    fn text(&self) -> String {
        let Self { client, server, from_client, from_server, .. } = self;
        let mut out = format!(
            "\nconnection {} of {} is connection {} of {}{}\n",
            client.connection,
            client.file,
            server.connection,
            server.file,
            if self.same_group { "" } else { ", by its packet numbers and lengths" }
        );
        self.clock_text(&mut out);
        from_client.text("client", "server", &mut out);
        from_server.text("server", "client", &mut out);
        if let Some((up, down)) = from_client.queue_s.zip(from_server.queue_s) {
            let _ = writeln!(
                out,
                "  queueing  {} from the client, {} from the server (99th percentile of the delay above \
                 the least)",
                span(up),
                span(down)
            );
        }
        if self.partial {
            out.push_str("  the first packets only: there are too many to compare all\n");
        }
        out
    }
}

impl QuicPairReport {
    fn clock_text(&self, out: &mut String) {
        let Some((ahead, round_trip)) = self.clock_ahead_s.zip(self.round_trip_s) else { return };
        if self.same_day {
            out.push_str(
                "  the delays are by the time of day of both logs, by which no packet arrives before it was sent\n",
            );
            return;
        }
        let (what, direction) = match (self.clock_origin, ahead < 0.0) {
            ("log-start", true) => ("log counts its times from", "after"),
            ("log-start", false) => ("log counts its times from", "before"),
            (_, true) => ("clock is", "behind"),
            (_, false) => ("clock is", "ahead of"),
        };
        let gains = self.clock_drift.map_or_else(String::new, |drift| {
            format!(", its clock gains {:+.1} us/s", drift * 1e6)
        });
        let _ = writeln!(
            out,
            "  the server's {what} {:.6} s {direction} the client's{gains}; certain to {:.6} s, and exact if both \
             directions take the same time",
            ahead.abs(),
            round_trip / 2.0
        );
    }
}

impl DiagnosisReport {
    /// The comparisons of logs as text; empty without any.
    pub(super) fn both_ends_text(&self) -> String {
        self.both_ends.iter().map(QuicPairReport::text).collect()
    }
}
