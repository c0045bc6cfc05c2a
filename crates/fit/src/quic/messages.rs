//! What the applications of both hosts wrote, by the log of the one that sends the data.

use diagnose::quic::exchange::QuicMessage;
use diagnose::quic::transfer::QuicTransfer;

use super::HABIT;
use crate::{Conversation, Message};

/// Most bytes with which a reader asks for more, and fewest such messages that show a window.
const MOST_ASKED: u64 = 64;
const FEWEST_ASKED: u64 = 4;
/// At least one of this number of such messages comes before an answer could.
const AMID: u64 = 3;
/// Shortest wait in ns that is the application's and not of the host.
const SHORTEST: u64 = 300_000;
/// A pause within the data of a host is at least this part of a round trip.
const PAUSE: u64 = 8;
/// One message of this number may overlap with one of the peer.
const TURNS: u64 = 20;

/// The messages, if the hosts take turns: `None` if it is one transfer. `rtt`: the shortest round trip in ns.
pub(super) fn conversation(
    transfer: &QuicTransfer,
    client: Option<bool>,
    rtt: u64,
) -> Option<Conversation> {
    let is_client = client?;
    let all = &transfer.messages;
    let asks = |one: &QuicMessage| !one.is_local && one.bytes <= MOST_ASKED;
    let asked = all.iter().filter(|one| asks(one)).count() as u64;
    // Those that come just as the window is full may look like answers.
    let amid = all.iter().filter(|one| asks(one) && one.is_amid).count() as u64;
    let has_window = amid >= FEWEST_ASKED && amid * AMID >= asked;
    let mut messages: Vec<Message> = Vec::new();
    // Waits since the last message began, of data that are no messages of their own.
    let mut passed = 0_u64;
    for one in all {
        let by_client = one.is_local == is_client;
        // What asks for more is no turn, and what it lets leave is the same message.
        if has_window && asks(one) {
            continue;
        }
        // Of data that the path held nearly all the time, a pause held nothing.
        let is_long = one.quiet.saturating_mul(HABIT) >= one.after.saturating_add(passed);
        let is_pause = !has_window && is_long && one.quiet >= SHORTEST.max(rtt / PAUSE);
        match messages.last_mut() {
            Some(last) if last.by_client == by_client && !is_pause => {
                last.bytes = last.bytes.saturating_add(one.bytes);
                passed = passed.saturating_add(one.after);
            }
            _ => {
                let after = one.after + if one.quiet > 0 { passed } else { 0 };
                let after = if after >= SHORTEST { after } else { 0 };
                messages.push(Message { by_client, bytes: one.bytes, after });
                passed = 0;
            }
        }
    }
    if let Some(first) = messages.first_mut() {
        first.after = 0;
    }
    let sent: u64 =
        all.iter().filter(|one| one.is_local).map(|one| one.bytes).fold(0, u64::saturating_add);
    let window = has_window.then(|| 2 * sent / asked.max(1));
    let found = Conversation { messages, held: 0, window, longest_wait: None };
    // Both hosts at once are no turns.
    let amid = all.iter().filter(|one| one.is_amid).count() as u64;
    let takes_turns = has_window || amid * TURNS <= all.len() as u64;
    (takes_turns && found.has_turns()).then_some(found)
}

/// The messages in words.
pub(super) fn described(found: &Conversation) -> String {
    let Conversation { messages, window, .. } = found;
    let waits: u64 = messages.iter().map(|one| one.after).fold(0, u64::saturating_add);
    let (number, waits) = (messages.len(), waits / 1_000);
    match window {
        Some(window) => {
            format!("{number} of both hosts, with a window of the application of {window} B")
        }
        None => format!("{number} of both hosts, with waits of {waits} us before them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RTT: u64 = 40 * MS;

    fn of(messages: Vec<QuicMessage>) -> Option<Conversation> {
        let mut transfer = QuicTransfer::default();
        transfer.messages = messages;
        conversation(&transfer, Some(false), RTT)
    }

    fn local(bytes: u64, after: u64, quiet: u64) -> QuicMessage {
        QuicMessage { is_local: true, bytes, after: after * MS, quiet: quiet * MS, is_amid: false }
    }

    fn peer(bytes: u64, after: u64, is_amid: bool) -> QuicMessage {
        QuicMessage { bytes, after: after * MS, is_amid, ..QuicMessage::default() }
    }

    fn waits(found: &Conversation) -> Vec<(bool, u64, u64)> {
        found.messages.iter().map(|one| (one.by_client, one.bytes, one.after / MS)).collect()
    }

    #[test]
    fn requests_with_waits_of_both_hosts_are_a_conversation() {
        let mut all = Vec::new();
        for _ in 0..3 {
            all.extend([peer(200, 70, false), local(10_000, 30, 0)]);
        }
        let found = of(all).unwrap();
        let expected = [(true, 200, 70), (false, 10_000, 30)].repeat(3);
        assert_eq!(waits(&found)[1..], expected[1..]);
        // One request with one answer is a transfer.
        assert_eq!(of(vec![peer(200, 0, false), local(90_000, 0, 0)]), None);
    }

    #[test]
    fn short_silences_within_the_data_are_no_messages_and_pauses_are() {
        let data =
            [peer(200, 0, false), local(9_000, 0, 0), local(1_000, 7, 1), local(500, 90, 60)];
        let found = of(data.to_vec()).unwrap();
        // 97 ms after the begin of the first of them.
        assert_eq!(waits(&found), [(true, 200, 0), (false, 10_000, 0), (false, 500, 97)]);
    }

    /// 100 ms of the path and 5 ms of the application are one message.
    #[test]
    fn a_short_pause_within_data_that_the_path_held_is_no_message() {
        let all = [peer(200, 0, false), local(90_000, 0, 0), local(9_000, 105, 5)];
        assert_eq!(of(all.to_vec()), None);
        let all = [peer(200, 0, false), local(90_000, 0, 0), local(9_000, 105, 50)];
        assert_eq!(of(all.to_vec()).map(|found| found.messages.len()), Some(3));
    }

    #[test]
    fn small_messages_that_no_data_can_have_caused_ask_for_more() {
        let mut all = vec![peer(200, 0, false), local(20_000, 0, 0)];
        for _ in 0..8 {
            all.extend([peer(13, 0, true), local(10_000, 0, 0)]);
        }
        let found = of(all).unwrap();
        assert_eq!(found.window, Some(2 * 100_000 / 8));
        assert_eq!(waits(&found), [(true, 200, 0), (false, 100_000, 0)]);
    }
}
