//! What is to blame for the time a transfer lost, and what each of its episodes of loss was.

use crate::Flow;
use crate::episodes::{Episode, Trigger};
use crate::path::{Path, queue_noise};

/// What is to blame for lost time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// Opening the connection.
    Opening,
    /// The first slow start.
    SlowStart,
    /// A first slow start that ran into a full queue, and the repair.
    Overshoot,
    /// Linear growth after a slow start that ended without a loss.
    EarlyExit,
    /// Slow start again after a rest.
    Restart,
    /// Losses with an empty queue.
    Random,
    /// Losses with a full queue.
    Overflow,
    /// Marks of a queue (ECN).
    Mark,
    /// Losses behind which nothing was sent that would have shown them.
    Tail,
    /// A timeout with the whole flight lost.
    Timeout,
    /// A fast recovery that nothing lost had called for.
    FalseRecovery,
    /// A timeout that nothing lost had called for.
    FalseTimeout,
    /// The receiver's window.
    Window,
    /// A receiver that reads late.
    Reader,
    /// The application.
    Application,
}

pub(crate) const BLAMES: usize = 15;

/// What an episode was.
pub(crate) fn blame(episode: &Episode, flow: &Flow, path: &Path) -> Blame {
    let timer = episode.timeouts > 0;
    if episode.trigger == Trigger::Mark {
        return Blame::Mark;
    }
    if episode.trigger == Trigger::Inferred {
        return if episode.tail { Blame::Tail } else { Blame::Timeout };
    }
    if episode.spurious > 0 && episode.spurious >= episode.retransmitted {
        return if timer { Blame::FalseTimeout } else { Blame::FalseRecovery };
    }
    // Losses at the end of what was to be sent: no packet came after them that would have made the
    // receiver report them. After the repair there was little new to send.
    let at_end = episode.sent_above * 2 < episode.window;
    if episode.trigger == Trigger::Probe || (timer && at_end) {
        return Blame::Tail;
    }
    if timer {
        return Blame::Timeout;
    }
    let base = path.base_rtt.unwrap_or(0);
    let waited = episode.rtt.saturating_sub(base);
    // A queue that overflows is as long as it ever gets.
    let longest = path.queue.max(waited);
    let lost = episode.retransmitted - episode.spurious;
    let first = flow.episodes.first().is_some_and(|e| e.begin == episode.begin);
    // Losing a sixteenth of a window at once by chance takes a loss rate of 6 %; then a queue half
    // as long as ever will do, for the first loss may have come before it was full.
    let window = episode.window.max(episode.flight);
    let many = lost * flow.mss * 16 >= window;
    let full = if many { waited * 2 >= longest } else { waited * 4 >= longest * 3 };
    if waited < queue_noise(base) || !full {
        return Blame::Random;
    }
    if first {
        // Slow start sends two packets for each that leaves the queue until the first loss is
        // reported a round trip later: it loses many, not one (RFC 9406 section 1). A sixteenth of
        // the window leaves room for pacing and for a late start of the overflow.
        if many { Blame::Overflow } else { Blame::Random }
    } else {
        Blame::Overflow
    }
}
