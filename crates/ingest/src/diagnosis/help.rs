//! What is known about the hosts of a connection, for the choice of help.

use diagnose::rules::{Finding, HelpFacts, MAX_UNSCALED_WINDOW};
use diagnose::{Analysis, EcnSupport, Negotiated};
use fit::{Guess, PeerSystem};
use packet::Dir;

use crate::inputs::QuicConnection;

/// QUIC stacks that have help of their own and that logs name.
const STACKS: [&str; 6] = ["quic-go", "quiche", "quinn", "neqo", "s2n-quic", "msquic"];

/// Chooses the help of the findings about the data of direction `dir`. `guesses` are the senders that
/// match the main direction, the best first.
pub(super) fn choose_help(
    findings: &mut [Finding],
    analysis: &Analysis,
    dir: Dir,
    guesses: &[Guess],
) {
    let facts = facts(analysis, dir, guesses);
    findings.iter_mut().for_each(|found| found.choose_help(&facts));
}

/// Chooses the help of the findings about a QUIC connection by the stack that its log names.
pub(super) fn choose_quic_help(findings: &mut [Finding], connection: &QuicConnection) {
    let named = connection.sender.as_ref().map(|sender| sender.profile.as_str());
    let is_version_of = |stack: &&str, profile: &str| {
        profile.strip_prefix(stack).is_some_and(|version| version.starts_with('-'))
    };
    let stack =
        named.and_then(|profile| STACKS.into_iter().find(|stack| is_version_of(stack, profile)));
    // The logging host sends the data, or receives them.
    let systems = if connection.analysis.is_sender() { [stack, None] } else { [None, stack] };
    let facts = HelpFacts { systems, ..HelpFacts::default() };
    findings.iter_mut().for_each(|found| found.choose_help(&facts));
}

fn facts(analysis: &Analysis, dir: Dir, guesses: &[Guess]) -> HelpFacts {
    let system = |host| match PeerSystem::of(analysis, host) {
        PeerSystem::Linux => Some("Linux"),
        PeerSystem::FreeBsd => Some("FreeBSD"),
        PeerSystem::Unknown => None,
    };
    let negotiated = Negotiated::of(analysis);
    let permits = [Dir::Forward, Dir::Reverse].map(|host| {
        let syn = negotiated.complete(host)?;
        let ecn = if host == Dir::Forward { negotiated.asked_ecn() } else { negotiated.ecn() };
        let permits_ecn = ecn.is_some_and(|ecn| ecn != EcnSupport::None);
        let options = syn.options;
        Some([options.sack_permitted, syn.timestamps, options.window_scale.is_some(), permits_ecn])
    });
    let is_unscaled = permits.iter().flatten().any(|[_, _, scaling, _]| !scaling);
    let flow = analysis.flows[dir as usize].as_deref();
    // Less than a segment more does not let the sender send one more.
    let is_largest = flow.is_some_and(|flow| {
        flow.window.is_some_and(|(_, largest, _)| largest + flow.mss > MAX_UNSCALED_WINDOW)
    });
    let matching = matching(if dir == analysis.main_dir() { guesses } else { &[] });
    HelpFacts {
        systems: [Dir::Forward, Dir::Reverse].map(system),
        dir,
        controller: same(matching.iter().map(|guess| guess.cc)),
        rack_stack: same(matching.iter().map(|guess| guess.profile.starts_with("freebsd-rack")))
            == Some(true),
        permits,
        window_can_grow: !(is_unscaled && is_largest),
    }
}

/// The senders that match and that their windows do not distinguish.
fn matching(guesses: &[Guess]) -> &[Guess] {
    let Some(best) = guesses.first().filter(|best| best.fits()) else { return &[] };
    let others = guesses.iter().position(|guess| !guess.equals(best));
    &guesses[..others.unwrap_or(guesses.len())]
}

/// The value that all have; `None` if they differ, or there is none.
fn same<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_that_windows_do_not_distinguish_agree_or_are_unknown() {
        let guess =
            |profile, cc, misfit| Guess { profile, cc, misfit, rounds: 9, slow_start_only: false };
        let cubic = guess("linux-6.18", "cubic", 0.001);
        let reno = |misfit| guess("linux-6.18", "reno", misfit);
        let controller = |all: &[Guess]| same(matching(all).iter().map(|guess| guess.cc));
        assert_eq!(controller(&[cubic, reno(0.1)]), Some("cubic"));
        assert_eq!(controller(&[cubic, reno(0.002)]), None);
        // None is near enough.
        assert_eq!(controller(&[reno(0.2)]), None);
        assert_eq!(controller(&[]), None);
    }
}
