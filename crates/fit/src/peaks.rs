//! Times at which the flight of a sender equals its congestion window.

use diagnose::FlowAnalysis;
use diagnose::rounds::Round;

/// Minimum rounds; fewer fit every sender.
pub(crate) const ROUNDS: usize = 4;
/// Fewest rounds that show a level flight after slow start.
const FEWEST_LEVEL: usize = 4;

/// Returns the events of maximum flight in rounds limited by the congestion window.
pub(crate) fn peaks(flow: &FlowAnalysis) -> Vec<usize> {
    let turns = &flow.turns;
    // The last flight may not fill the window.
    let last = flow.rounds.iter().rposition(|round| round.sent > 0).unwrap_or(0);
    // A send buffer limit appears as a flight that stays at its maximum.
    let height = flow.rounds.iter().map(|round| round.flight).max().unwrap_or(0);
    let level = |flight: u64| flight * 50 >= height * 49;
    let mut peaks = Vec::new();
    // If nearly all rounds have losses, use also rounds in recovery.
    let undisturbed = |round: &&Round| round.held_by_window();
    let few = flow.rounds[..last].iter().filter(undisturbed).count() < ROUNDS;
    let reported =
        |round: &&Round| undisturbed(round) || (few && round.is_cwnd_limited_or_recovering());
    for round in flow.rounds[..last].iter().filter(reported) {
        let from = turns.partition_point(|turn| turn.at < round.start);
        // The event that released the round's first data precedes them.
        let from = from.saturating_sub(1);
        let until = turns.partition_point(|turn| turn.at < round.start + round.length());
        let peak = (from..until).max_by_key(|&n| (turns[n].flight, core::cmp::Reverse(n)));
        // A round beyond the kept events has no end.
        if let Some(peak) = peak.filter(|_| until < turns.len()) {
            let full = turns[peak].window < turns[peak].flight + flow.mss;
            let full = full || (round.drained() && level(round.flight));
            if !full && peaks.last() != Some(&peak) {
                peaks.push(peak);
            }
        }
    }
    peaks
}

/// Whether at least half of the rounds have about the same flight, all or those since it was largest first: before, slow
/// start has less.
pub(crate) fn is_level(flow: &FlowAnalysis) -> bool {
    let flights: Vec<u64> = flow.rounds.iter().map(|round| round.flight).collect();
    let is_near = |flights: &[u64], height: u64| {
        let near = flights.iter().filter(|flight| flight.abs_diff(height) * 8 <= height).count();
        near * 2 >= flights.len()
    };
    let mut sorted = flights.clone();
    sorted.sort_unstable();
    let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let most = sorted.last().copied().unwrap_or(0);
    let first = flights.iter().position(|flight| flight * 8 >= most * 7).unwrap_or(0);
    let rest = &flights[first..];
    is_near(&flights, usual) || (rest.len() >= FEWEST_LEVEL && is_near(rest, most))
}
