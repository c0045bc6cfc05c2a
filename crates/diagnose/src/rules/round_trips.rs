//! Whether requests that go one after the other spend the time of a connection on round trips: a part of CC501.
//!
//! A program sends its next request as soon as it has the response; a user, or a program that computes, waits
//! longer than the network does. The round trips of such a conversation would be one if the requests were sent
//! together.

use packet::Dir;
use units::Duration;

use super::case::{DiagnosisCase, count, many, number, seconds, time, time_percent};
use super::think_time::{has_messages, roles_are_known};
use super::{DiagnosisRule, Finding};
use crate::exchange::{ExchangeBudget, ExchangeShare};

/// Fewest requests: a page of a few objects, after an opening of TLS, has several turns that nothing can save.
const MIN_REQUESTS: u64 = 10;

/// Requests one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundTrips {
    /// Their number.
    requests: u64,
    /// Round trips of all but the first.
    cost: Duration,
    /// Time of the connection without rests.
    work: Duration,
}

impl RoundTrips {
    /// The requests, if their round trips take a quarter of the time or more.
    pub(super) fn of(case: &DiagnosisCase<'_>) -> Option<Self> {
        let budget: &ExchangeBudget = case.analysis.exchange.as_deref()?;
        if !roles_are_known(case) || case.flow.dir != case.analysis.main_dir() {
            return None;
        }
        let requests = budget.requests();
        let work = budget.whole().saturating_sub(budget.of(ExchangeShare::Idle));
        let trip = budget.turning / requests.max(1);
        let cost = budget.turning.saturating_sub(trip);
        let client = budget.thinking[Dir::Forward as usize].mean().unwrap_or_default();
        let is_found = requests >= MIN_REQUESTS
            && has_messages(case, requests)
            && client <= trip
            && cost * 4 >= work;
        is_found.then_some(Self { requests, cost, work })
    }

    /// The finding about them.
    pub(super) fn finding(&self, case: &DiagnosisCase<'_>, rule: &DiagnosisRule) -> Finding {
        let Self { requests, cost, work } = *self;
        let trip = cost / requests.saturating_sub(1).max(1);
        let title = format!(
            "{} one after the other: a round trip of {} each takes {} in all, {} of the time",
            many(requests, "request"),
            time(trip),
            time(cost),
            time_percent(cost, work)
        );
        let mut finding = case
            .finding(rule, cost, title)
            .of_kind("round-trips")
            .with([
                count("requests", requests, "requests", many(requests, "answered request")),
                number("round_trip_s", seconds(trip), "round trip", time(trip)),
                number("turning_s", seconds(cost), "waited", format!("{} for round trips", time(cost))),
            ])
            .because("the client sends a request when it has the response to the one before")
            .unseen("whether the requests depend on each other: pipeline or batch them, or move the hosts nearer");
        finding.severity = DiagnosisCase::severity_of_wait(cost, work);
        finding
    }
}
