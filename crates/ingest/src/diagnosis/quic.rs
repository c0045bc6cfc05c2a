//! Diagnosed QUIC connections of a log, as text and JSON.

use core::fmt::Write;

use diagnose::quic::time;
use diagnose::quic::{QuicBudget, QuicDiagnosis, QuicLimiter};
use diagnose::rules::{many, percent, rate, size};
use fit::DialectGuess;
use logs::qlog::Vantage;
use scenario::ReportStyle;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use units::Duration;

use super::cures::{CureJson, TriedCure};
use super::help::choose_quic_help;
use super::json::FindingJson;
use super::text::{BAR, FindingSite, TextStyle, findings, paint};
use crate::inputs::QuicConnection;

/// A QUIC connection with the summary of its diagnosis.
#[derive(Debug)]
pub struct QuicReport {
    /// The connection.
    pub connection: QuicConnection,
    /// Its findings.
    pub diagnosis: QuicDiagnosis,
    /// Cures of the one that limited it, tried in simulations of the transfer.
    pub cures: Vec<TriedCure>,
}

impl QuicReport {
    pub(super) fn of(connection: QuicConnection) -> Self {
        let mut diagnosis = QuicDiagnosis::of(&connection.analysis);
        choose_quic_help(&mut diagnosis.findings, &connection);
        Self { connection, diagnosis, cures: Vec::new() }
    }

    /// The connection with its findings, without colours.
    pub fn plain_text(&self, file: &str) -> String {
        let mut out = String::new();
        self.text(file, TextStyle { limit: 1, look: ReportStyle::Plain }, &mut out);
        out.trim_start().to_owned()
    }

    /// Writes the connection with its findings.
    pub(super) fn text(&self, file: &str, view: TextStyle, out: &mut String) {
        let analysis = &self.connection.analysis;
        let (number, name) = (self.connection.number, self.name());
        let _ = writeln!(out, "\nconnection {number}  {name}  {}", self.amount());
        let how = if self.connection.decrypted.is_some() { "captured at" } else { "logged by" };
        let mut facts = vec![match analysis.client {
            Some(true) => format!("{how} the client"),
            Some(false) => format!("{how} the server"),
            None => "vantage point unknown".to_owned(),
        }];
        if let Some(counts) = &self.connection.decrypted {
            facts.push(format!(
                "{} decrypted, {} not",
                many(counts.decrypted, "packet"),
                counts.failed
            ));
            if counts.key_updates > 0 {
                facts.push(many(counts.key_updates, "key update"));
            }
        }
        if let Some([min, ..]) = analysis.round_trips {
            facts.push(format!("round trip {}", time(min)));
        }
        facts.push(format!(
            "{} sent, {} received",
            many(analysis.sent, "packet"),
            analysis.received
        ));
        if analysis.all_lost() > 0 {
            let spurious = match analysis.spurious {
                0 => String::new(),
                spurious => format!(", {spurious} of them arrived"),
            };
            facts.push(format!("{} declared lost{spurious}", analysis.all_lost()));
        }
        if let Some([first, largest, last]) = analysis.windows {
            let text =
                format!("window {}, at most {}, last {}", size(first), size(largest), size(last));
            facts.push(text);
        }
        let _ = writeln!(out, "  {}", facts.join("; "));
        if !analysis.missing.is_empty() {
            let _ = writeln!(out, "  not in the log: {}", analysis.missing.join(", "));
        }
        if let Some(text) = dialect_text(&self.dialects()) {
            let _ = writeln!(out, "  {text}");
        }
        budget(&analysis.budget, view.look, out);
        let site = FindingSite {
            file,
            item: "connection",
            number: self.connection.number,
            records: if self.connection.decrypted.is_some() { "frames" } else { "events" },
            active: Duration::from_nanos(analysis.budget.active()),
            filtered: false,
            cures: &self.cures,
        };
        findings(&self.diagnosis.findings, &site, view.look, out);
    }

    /// The dialects of BBR by their windows, best first; none if the data of the log were not kept.
    fn dialects(&self) -> Vec<DialectGuess> {
        let transfer = self.connection.analysis.transfer.as_deref();
        transfer.map(fit::dialects).unwrap_or_default()
    }

    /// What was transferred, and in which time.
    fn amount(&self) -> String {
        let analysis = &self.connection.analysis;
        let span = time(analysis.duration());
        match (analysis.is_sender(), analysis.frames_inferred) {
            (true, _) => {
                format!("{} sent in {span}, {}", size(analysis.bytes()), rate(analysis.goodput()))
            }
            // Of what is received such a log has the packets only.
            (false, true) => format!("{} received in {span}", many(analysis.received, "packet")),
            (false, false) => {
                format!(
                    "{} received in {span}, {}",
                    size(analysis.bytes()),
                    rate(analysis.goodput())
                )
            }
        }
    }

    /// Title of the trace, or its connection ID.
    pub(super) fn name(&self) -> String {
        let QuicConnection { title, group, .. } = &self.connection;
        let name = if title.is_empty() { group } else { title };
        if name.is_empty() { "QUIC".to_owned() } else { printable(name) }
    }
}

/// The dialects of BBR whose windows the log has, as text; `None` if it has those of another sender.
fn dialect_text(guesses: &[DialectGuess]) -> Option<String> {
    let best = guesses.first().filter(|best| best.fits())?;
    let off = |guess: &DialectGuess| format!("{:.1} %", 100.0 * guess.misfit);
    let (equal, others): (Vec<&DialectGuess>, Vec<_>) =
        guesses.iter().partition(|guess| guess.equals(best));
    let names: Vec<_> = equal.iter().map(|guess| guess.cc).collect();
    let mut text = format!("windows like those of {}", names.join(" or "));
    if equal.len() > 1 {
        text += ", which cannot be distinguished here";
    }
    let _ = write!(text, ": {} off in {}", off(best), many(best.windows as u64, "window"));
    for other in others.iter().take(2) {
        let _ = write!(text, "; {} {}", other.cc, off(other));
    }
    Some(text)
}

/// Most characters of a name of the log.
const NAME: usize = 60;

/// A text of the log without control characters, truncated.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(NAME).collect()
}

/// The letter of a limiter in the bar of the text.
pub fn quic_limiter_letter(of: QuicLimiter) -> char {
    LETTERS.iter().find(|(limiter, ..)| *limiter == of).map_or('?', |(_, letter, _)| *letter)
}

const LETTERS: [(QuicLimiter, char, &str); 15] = [
    (QuicLimiter::Handshake, 'h', "37"),
    (QuicLimiter::AntiAmplification, '3', "37"),
    (QuicLimiter::SlowStart, 's', "33"),
    (QuicLimiter::Window, 'c', "35"),
    (QuicLimiter::ConnectionFlow, 'f', "34"),
    (QuicLimiter::StreamFlow, 'm', "34"),
    (QuicLimiter::StreamCount, 'n', "34"),
    (QuicLimiter::Pacing, 'p', "35"),
    (QuicLimiter::Application, 'a', "36"),
    (QuicLimiter::Recovery, 'r', "31"),
    (QuicLimiter::Timeout, 't', "31;1"),
    (QuicLimiter::Path, '=', "32"),
    (QuicLimiter::Peer, 'd', "32"),
    (QuicLimiter::Idle, '.', "90"),
    (QuicLimiter::Unknown, '?', "90"),
];

/// Writes a bar with a letter for each limiter, and their percentages.
fn budget(budget: &QuicBudget, look: ReportStyle, out: &mut String) {
    let whole = budget.whole();
    if whole == 0 {
        return;
    }
    let (mut bar, mut shares) = (String::new(), Vec::new());
    let (mut done, mut drawn) = (0_u128, 0);
    for (limiter, letter, colour) in LETTERS {
        let ns = budget.of(limiter).ns;
        if ns == 0 {
            continue;
        }
        done += u128::from(ns);
        let until = (done * BAR as u128 / u128::from(whole)) as usize;
        let part: String = core::iter::repeat_n(letter, until - drawn).collect();
        drawn = until;
        bar.push_str(&paint(&part, colour, look));
        shares.push(format!("{letter} {} {}", limiter.name(), percent(ns, whole)));
    }
    let _ = writeln!(out, "  time  [{bar}]");
    let _ = writeln!(out, "        {}", shares.join(" | "));
}

/// A connection in JSON.
#[derive(Serialize)]
pub(super) struct QuicJson<'a> {
    id: u32,
    title: &'a str,
    group_id: &'a str,
    vantage: &'static str,
    sends: bool,
    bytes: u64,
    duration_s: f64,
    goodput_bps: f64,
    packets_sent: u64,
    packets_received: u64,
    lost_packets: u64,
    spurious_packets: u64,
    min_rtt_s: Option<f64>,
    max_congestion_window_bytes: Option<u64>,
    bottleneck_bps: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bbr_dialects: Vec<DialectJson>,
    time_budget: BudgetJson<'a>,
    not_in_the_log: &'a [&'static str],
    primary: Option<&'static str>,
    findings: Vec<FindingJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cures: Vec<CureJson>,
}

/// A dialect of BBR.
#[derive(Serialize)]
struct DialectJson {
    cc: &'static str,
    fits: bool,
    misfit: f64,
    windows: usize,
}

impl DialectJson {
    fn of(guess: DialectGuess) -> Self {
        let DialectGuess { cc, misfit, windows } = guess;
        Self { cc, fits: guess.fits(), misfit, windows }
    }
}

struct BudgetJson<'a>(&'a QuicBudget);

impl Serialize for BudgetJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(QuicLimiter::ALL.len()))?;
        for limiter in QuicLimiter::ALL {
            let key = format!("{}_s", limiter.key());
            map.serialize_entry(&key, &(self.0.of(limiter).ns as f64 / 1e9))?;
        }
        map.end()
    }
}

impl QuicReport {
    pub(super) fn json(&self) -> QuicJson<'_> {
        let QuicConnection { number, title, group, vantage, analysis, .. } = &self.connection;
        let found = self.diagnosis.findings.iter().cloned();
        QuicJson {
            id: *number,
            title,
            group_id: group,
            vantage: match vantage {
                Vantage::Unknown => match analysis.client {
                    Some(true) => "client",
                    Some(false) => "server",
                    None => "unknown",
                },
                known => known.name(),
            },
            sends: analysis.is_sender(),
            bytes: analysis.bytes(),
            duration_s: analysis.duration() as f64 / 1e9,
            goodput_bps: analysis.goodput() * 8.0,
            packets_sent: analysis.sent,
            packets_received: analysis.received,
            lost_packets: analysis.all_lost(),
            spurious_packets: analysis.spurious,
            min_rtt_s: analysis.round_trips.map(|[min, ..]| min as f64 / 1e9),
            max_congestion_window_bytes: analysis.windows.map(|[_, largest, _]| largest),
            bottleneck_bps: analysis.bottleneck.map(|rate| rate * 8.0),
            bbr_dialects: self.dialects().into_iter().map(DialectJson::of).collect(),
            time_budget: BudgetJson(&analysis.budget),
            not_in_the_log: &analysis.missing,
            primary: self.diagnosis.primary,
            findings: found.map(FindingJson::of_event).collect(),
            cures: self.cures.iter().map(CureJson::of).collect(),
        }
    }
}
