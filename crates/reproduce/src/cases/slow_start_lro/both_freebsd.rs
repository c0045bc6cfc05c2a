//! FreeBSD at both ends with a receiver that merges segments: in 14.3 and main the sink's window
//! updates count as duplicate ACKs, and the sender keeps the smaller window
//! (docs/freebsd-window-updates.md).

use record::{Event, EventSource, Recorder, SenderState, SentKind};
use sim::Observer;
use units::Instant;

use super::FREEBSD;
use crate::cases::{CaseError, CaseRow, Workers, load, run};

/// Profile at both ends, and seconds of the complete stack of that version from the established
/// connection to the last byte read (golden/freebsd-closed, `lro-sink-3mb`).
const REAL: [(&str, f64); 3] =
    [("freebsd-main", 9.417), ("freebsd-14.3", 9.417), ("freebsd-13.0", 5.388)];

/// tcp_lro.c of 13.0 counts the pure ACKs that it merges.
const LRO_13_0: &str = "host.sink.lro={ counts_pure_acks = true, length_limit = \"65535B\" }";

/// Bytes of the transfer.
const BYTES: u64 = 3_000_000;

/// Observes the start of the transfer and the time when all of it is read.
#[derive(Default)]
struct TransferTimes {
    first_data: Option<Instant>,
    read: u64,
    all_read: Option<Instant>,
}

impl Recorder for TransferTimes {
    const ON: bool = true;

    fn record(&mut self, at: Instant, source: EventSource, event: Event, _: Option<&SenderState>) {
        match event {
            Event::Sent { kind: SentKind::New, .. } if source.host.0 == 0 => {
                self.first_data.get_or_insert(at);
            }
            Event::AppRead { bytes, .. } if source.host.0 == 1 => {
                self.read += u64::from(bytes);
                if self.read >= BYTES {
                    self.all_read.get_or_insert(at);
                }
            }
            _ => {}
        }
    }
}

impl Observer for TransferTimes {}

/// The overrides for `profile` at both ends.
pub(crate) fn set_of(profile: &str) -> Vec<String> {
    let mut set =
        vec![format!("host.sender.profile={profile}"), format!("host.sink.profile={profile}")];
    if profile == "freebsd-13.0" {
        set.push(LRO_13_0.into());
    }
    set
}

fn seconds(set: &[&str], workers: &Workers<'_>) -> Result<Option<f64>, CaseError> {
    let mut transfer = TransferTimes::default();
    run(&load(FREEBSD, "slow-start-freebsd.toml", set)?, &mut transfer, workers)?;
    let span = transfer.all_read.zip(transfer.first_data).map(|(end, start)| end.since(start));
    Ok(span.map(|span| span.as_secs_f64()))
}

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let mut rows = workers.map(&REAL, |&(profile, real)| {
        let set = set_of(profile);
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        Ok(CaseRow::band(
            format!("3 MB over 100 ms, {profile} at both ends, the sink merges"),
            "s",
            real,
            seconds(&set, workers)?,
            0.99 * real,
            1.01 * real,
        )
        .note("FreeBSD's complete TCP of that version, within 1 %")
        .by(profile)
        .recorded())
    })?;
    let lro = ["host.sender.lro=true", "host.sender.interrupt_moderation=700us"];
    rows.push(
        CaseRow::info(
            "the same, freebsd-main, the sender merges too",
            "s",
            5.43,
            seconds(&lro, workers)?,
        )
        .recorded()
        .note("a fix: the sender's LRO merges the two ACKs into one. The complete stack's reader runs after an entire LRO pass, ours after each aggregate, so windows differ from the 581st packet on"),
    );
    rows.push(
        CaseRow::predicted(
            "the same, freebsd-main, LRO off at the sink",
            "s",
            None,
            seconds(&["host.sink.lro=false"], workers)?,
        )
        .note("a fix: `ifconfig IF -lro` at the receiver"),
    );
    Ok(rows)
}
