//! What the applications of both hosts wrote, by the log of the one that sends the data.

use diagnose::quic::transfer::QuicTransfer;

use crate::{Conversation, Message};

/// Most bytes with which a reader asks for more, and fewest such messages that show a window.
const MOST_ASKED: u64 = 64;
const FEWEST_ASKED: u64 = 4;
/// Shortest wait in ns that is the application's and not of the host.
const SHORTEST: u64 = 300_000;

/// The messages, if the hosts take turns: `None` if it is one transfer.
pub(super) fn conversation(transfer: &QuicTransfer, client: Option<bool>) -> Option<Conversation> {
    let is_client = client?;
    let all = &transfer.messages;
    let asks = |one: &&diagnose::quic::exchange::QuicMessage| {
        !one.is_local && one.is_amid && one.bytes <= MOST_ASKED
    };
    let of_peer = all.iter().filter(|one| !one.is_local).count() as u64;
    let asked = all.iter().filter(asks).count() as u64;
    let has_window = asked >= FEWEST_ASKED && asked * 2 > of_peer;
    let mut messages: Vec<Message> = Vec::new();
    for one in all {
        let by_client = one.is_local == is_client;
        // What asks for more is no turn, and what it lets leave is the same message.
        if has_window && asks(&one) {
            continue;
        }
        match messages.last_mut() {
            Some(last) if has_window && last.by_client == by_client => last.bytes += one.bytes,
            _ => {
                let after = if one.after >= SHORTEST { one.after } else { 0 };
                messages.push(Message { by_client, bytes: one.bytes, after });
            }
        }
    }
    if let Some(first) = messages.first_mut() {
        first.after = 0;
    }
    let sent: u64 = all.iter().filter(|one| one.is_local).map(|one| one.bytes).sum();
    let window = has_window.then(|| 2 * sent / asked.max(1));
    let found = Conversation { messages, held: 0, window };
    // Both hosts at once are no turns.
    let amid = all.iter().filter(|one| one.is_amid).count() as u64;
    let takes_turns = has_window || amid * 20 <= all.len() as u64;
    (takes_turns && found.has_turns()).then_some(found)
}

/// The messages in words.
pub(super) fn described(found: &Conversation) -> String {
    let Conversation { messages, window, .. } = found;
    let waits: u64 = messages.iter().map(|one| one.after).sum();
    let (number, waits) = (messages.len(), waits / 1_000);
    match window {
        Some(window) => format!("{number} of both hosts, with a window of the application of {window} B"),
        None => format!("{number} of both hosts, with waits of {waits} us before them"),
    }
}
