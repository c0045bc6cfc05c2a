//! The verdict on a connection: what limits it, where its time went, the cures that were tried.

use diagnose::quic::QuicLimiter;
use diagnose::rules::{rate, size, time, time_percent};
use diagnose::{Diagnosis, Limiter};
use ingest::diagnosis::{
    ConnectionReport, FileReport, QuicReport, TriedCure, Validity, limiter_letter,
    quic_limiter_letter,
};
use report::verdict::{PartColour, Verdict, VerdictChange, VerdictPart};
use units::Duration;

use super::sentence;

/// The verdict on a TCP connection.
pub(super) fn of_tcp(
    file: &FileReport,
    judged: &ConnectionReport,
    diagnosis: &Diagnosis,
    facts: Vec<(String, String)>,
) -> Verdict {
    let budget = &diagnosis.course.budget;
    let parts = Limiter::ALL.map(|limiter| {
        (budget.of(limiter), limiter.key(), limiter_letter(limiter), colour(limiter))
    });
    Verdict {
        sentence: sentence(&file.tcp_answer(judged)),
        whole: whole(budget.whole()),
        parts: of_parts(parts.into_iter()),
        changes: changes(&judged.cures),
        facts,
    }
}

/// The verdict on a QUIC connection in a log.
pub(super) fn of_quic(file: &FileReport, judged: &QuicReport) -> Verdict {
    let analysis = &judged.connection.analysis;
    let budget = &analysis.budget;
    let parts = QuicLimiter::ALL.map(|limiter| {
        let part = Duration::from_nanos(budget.of(limiter).ns);
        (part, limiter.key(), quic_limiter_letter(limiter), quic_colour(limiter))
    });
    let mut facts = vec![("time".to_owned(), time(Duration::from_nanos(analysis.duration())))];
    if analysis.bytes() > 0 {
        facts.push(("bytes".to_owned(), size(analysis.bytes())));
        facts.push(("goodput".to_owned(), rate(analysis.goodput())));
    }
    Verdict {
        sentence: sentence(&file.quic_answer(judged)),
        whole: whole(Duration::from_nanos(budget.whole())),
        parts: of_parts(parts.into_iter()),
        changes: changes(&judged.cures),
        facts,
    }
}

fn whole(whole: Duration) -> String {
    format!("Where the time went: {}", time(whole))
}

fn of_parts(
    parts: impl Iterator<Item = (Duration, &'static str, char, PartColour)> + Clone,
) -> Vec<VerdictPart> {
    let whole: Duration = parts.clone().map(|(part, ..)| part).sum();
    let part = |(part, name, letter, colour): (Duration, &str, char, PartColour)| VerdictPart {
        // The names of the JSON are words.
        name: name.replace('_', " "),
        letter,
        weight: part.as_nanos(),
        text: format!("{}, {}", time(part), time_percent(part, whole)),
        colour,
    };
    parts.filter(|(part, ..)| !part.is_zero()).map(part).collect()
}

/// Neighbours in the bar have colours that differ for colour-blind readers, too.
const fn colour(limiter: Limiter) -> PartColour {
    match limiter {
        Limiter::Handshake => PartColour::Ink,
        Limiter::SlowStart => PartColour::Amber,
        Limiter::Cwnd => PartColour::Pink,
        Limiter::Rwnd => PartColour::Blue,
        Limiter::Application => PartColour::Sky,
        Limiter::Recovery => PartColour::Vermilion,
        Limiter::Timeout => PartColour::Olive,
        Limiter::Path => PartColour::Green,
        Limiter::Idle => PartColour::Faint,
        Limiter::Unknown => PartColour::Hatched,
    }
}

const fn quic_colour(limiter: QuicLimiter) -> PartColour {
    match limiter {
        QuicLimiter::Handshake => PartColour::Ink,
        QuicLimiter::SlowStart => PartColour::Amber,
        QuicLimiter::AntiAmplification | QuicLimiter::Timeout => PartColour::Olive,
        QuicLimiter::Window => PartColour::Pink,
        QuicLimiter::Recovery => PartColour::Vermilion,
        QuicLimiter::ConnectionFlow | QuicLimiter::StreamFlow | QuicLimiter::StreamCount => {
            PartColour::Blue
        }
        QuicLimiter::Pacing | QuicLimiter::Application => PartColour::Sky,
        QuicLimiter::Path | QuicLimiter::Peer => PartColour::Green,
        QuicLimiter::Idle => PartColour::Faint,
        QuicLimiter::Unknown => PartColour::Hatched,
    }
}

/// The cures that were tried, those with a figure and the largest gain first.
fn changes(cures: &[TriedCure]) -> Vec<VerdictChange> {
    let mut order: Vec<&TriedCure> = cures.iter().collect();
    let rank = |cure: &TriedCure| match cure.prediction.validity {
        Validity::Figure => 0,
        Validity::Range => 1,
        Validity::None => 2,
    };
    order.sort_by(|a, b| rank(a).cmp(&rank(b)).then(a.duration_s.total_cmp(&b.duration_s)));
    order.into_iter().map(change).collect()
}

fn change(cure: &TriedCure) -> VerdictChange {
    let TriedCure { what, recorded_s, duration_s, prediction, .. } = cure;
    let words = |s: f64| time(Duration::from_nanos((s * 1e9) as u64));
    let permille = |s: f64| (s / recorded_s * 1e3) as u32;
    let (after, low, high) = match prediction.validity {
        Validity::None => {
            return VerdictChange {
                what: what.clone(),
                before: String::new(),
                after: "cannot be predicted".to_owned(),
                permille: None,
                note: prediction.why.clone(),
            };
        }
        Validity::Figure => (words(*duration_s), *duration_s, *duration_s),
        Validity::Range => {
            let (low, high) = (prediction.low_s, prediction.high_s);
            (format!("{} to {}", words(low), words(high)), low, high)
        }
    };
    VerdictChange {
        what: what.clone(),
        before: words(*recorded_s),
        after,
        permille: Some((permille(low), permille(high))),
        note: if prediction.validity == Validity::Range {
            prediction.why.clone()
        } else {
            String::new()
        },
    }
}
