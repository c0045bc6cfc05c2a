//! Whether one or two responses take much of the time of a connection: a part of CC505.
//!
//! A wait is evidence of a slow server without many others like it if the server's host acknowledged the
//! request at its beginning: the request was not lost. At the server the capture shows that its response
//! was not either; elsewhere only that its packets are numbered without a gap, if they are. Some bytes between
//! the request and the wait may be those of a layer below the application; they may also be the beginning of
//! a stream of events, so the confidence is low then.

use packet::Dir;
use units::Duration;

use super::case::{DiagnosisCase, count, many, number, seconds, time, time_percent};
use super::think_time::{MAX_SERVER_MEAN, MIN_TURNS, queue, roles_are_known};
use super::{Confidence, DiagnosisRule, Finding, Severity};
use crate::capture_point::CapturePoint;
use crate::exchange::{ExchangeShare, Waits};

/// Longest wait. Long polls and heartbeats take longer.
const MAX_WAIT: Duration = MAX_SERVER_MEAN;

/// Responses that take much of the time of a connection, without that of its client.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlowResponses {
    waits: Waits,
    /// Those before which the server sent something.
    preluded: u64,
    requests: u64,
    /// Time of the connection without rests, and that without waits of the client too.
    whole: Duration,
    work: Duration,
    /// Longest time to the first byte of a response.
    first_byte: Duration,
}

impl SlowResponses {
    /// The slow responses, if they take a tenth of the time or more; `None` also where that may be no think
    /// time.
    pub(super) fn of(case: &DiagnosisCase<'_>) -> Option<Self> {
        let budget = case.analysis.exchange.as_deref()?;
        if !roles_are_known(case) || case.flow.dir != case.analysis.main_dir() {
            return None;
        }
        let requests = budget.thinking[Dir::Reverse as usize].count;
        let waits = budget.slow_responses;
        // The client's waits may be its user's; the server is no faster because of them.
        let whole = budget.whole().saturating_sub(budget.of(ExchangeShare::Idle));
        let work = whole.saturating_sub(budget.of(ExchangeShare::Client));
        // Three of them or more are judged by their mean.
        let is_found = (1..MIN_TURNS).contains(&waits.count)
            && waits.longest.length <= MAX_WAIT
            && waits.total * 10 >= work
            && waits.longest.length >= queue(case) * 2;
        let first_byte = budget.first_byte.longest.length;
        let preluded = budget.preluded;
        is_found.then_some(Self { waits, preluded, requests, whole, work, first_byte })
    }

    /// The finding about them.
    pub(super) fn finding(&self, case: &DiagnosisCase<'_>, rule: &DiagnosisRule) -> Finding {
        let Waits { count: slow, total, longest } = self.waits;
        let takes = match slow {
            1 => "a response takes".to_owned(),
            _ => format!("{slow} responses take"),
        };
        let title = format!(
            "the server is slow: {takes} {}, {} of the time that is not the client's",
            time(total),
            time_percent(total, self.work)
        );
        let (first, last) = longest.frames;
        let longest_text = format!("{} in frames {first}..{last}", time(longest.length));
        let mut finding = case
            .finding(rule, total, title)
            .of_kind("think-server")
            .at((longest.until.saturating_sub(longest.length), longest.until), longest.frames)
            .with([
                number(
                    "slow_responses_s",
                    seconds(total),
                    "waits",
                    format!("{} after the server's host acknowledged the request", time(total)),
                ),
                number("longest_think_s", seconds(longest.length), "longest", longest_text),
                count("slow_responses", slow, "", String::new()),
                count(
                    "turns",
                    self.requests,
                    "requests",
                    format!("{} answered", many(self.requests, "request")),
                ),
            ])
            .because("the server's application computes, reads a disk or waits for another server");
        if self.preluded == 0 {
            let text =
                format!("{} after the request at most, at the client", time(self.first_byte));
            let item = number("first_byte_s", seconds(self.first_byte), "first byte", text);
            finding = finding.with([item]);
        } else {
            let text =
                "session tickets of TLS 1.3, settings of HTTP/2 or the like, before the response";
            finding = finding.with([count("preluded", self.preluded, "sends", text.to_owned())]);
        }
        // One or two responses are no habit: never an error.
        finding.severity = if total * 10 < self.whole { Severity::Note } else { Severity::Warning };
        let is_at_server = case.analysis.capture_point(Dir::Reverse) == CapturePoint::Sender;
        finding.confidence = match (is_at_server, self.preluded) {
            (_, 1..) => Confidence::Low,
            (true, _) => Confidence::High,
            (false, _) => Confidence::Medium,
        };
        if !is_at_server {
            finding = finding.unseen(
                "whether the response was sent before, and lost between the server and the capture point",
            );
        }
        finding.unseen("which of them, and whether it waits for an event, as a long poll does")
    }
}
