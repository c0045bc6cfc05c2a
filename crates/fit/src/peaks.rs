//! Moments at which the flight of a sender shows its congestion window.

use diagnose::Flow;
use diagnose::rounds::Round;

/// Rounds that say something at least; fewer fit every sender.
pub(crate) const ROUNDS: usize = 4;

/// Turns after which the most was under way in a round that the congestion window held.
pub(crate) fn peaks(flow: &Flow) -> Vec<usize> {
    let turns = &flow.turns;
    // What is sent last need not fill the window.
    let last = flow.rounds.iter().rposition(|round| round.sent > 0).unwrap_or(0);
    // A send buffer shows where the flight comes to its height and stays there.
    let height = flow.rounds.iter().map(|round| round.flight).max().unwrap_or(0);
    let level = |flight: u64| flight * 50 >= height * 49;
    let mut peaks = Vec::new();
    // Where nearly every round trip loses something, those in which losses are repaired must do.
    let undisturbed = |round: &&Round| round.held_by_window();
    let few = flow.rounds[..last].iter().filter(undisturbed).count() < ROUNDS;
    let told = |round: &&Round| undisturbed(round) || (few && round.held_or_repairing());
    for round in flow.rounds[..last].iter().filter(told) {
        let from = turns.partition_point(|turn| turn.at < round.start);
        // The turn that let the round's first data go came just before them.
        let from = from.saturating_sub(1);
        let until = turns.partition_point(|turn| turn.at < round.start + round.length());
        let peak = (from..until).max_by_key(|&n| (turns[n].flight, core::cmp::Reverse(n)));
        // A round beyond what was kept has no end among the turns.
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
