//! Rows of `tcp_do_prr_ack`, `rack_calc_thresh_rack` and `rack_check_reorder_ack`:
//! [`recovery::prr::freebsd`], [`recovery::rack_freebsd`], [`recovery::rack_undo`].

use ::recovery::holes::SackChange;
use ::recovery::prr::freebsd::{PrrFreeBsd, PrrFreeBsdInput, PrrRule, RecoveryCause};
use ::recovery::rack_freebsd::{RackFreeBsd, ThreshParams};
use ::recovery::rack_undo::{ArrivedSegment, RackUndo, UndoDecision};
use units::{Duration, Instant};

use super::rows::{GoldenColumn, GoldenError, GoldenRow, GoldenRows, GoldenTally};

/// The columns by their letters; their meaning depends on the kind of row.
struct Letters([GoldenColumn; 19]);

impl Letters {
    /// Returns the column of a letter from `a` to `s`.
    fn column(&self, letter: u8) -> GoldenColumn {
        self.0[usize::from(letter - b'a')]
    }

    fn number(&self, row: &GoldenRow<'_>, letter: u8) -> Result<u64, GoldenError> {
        row.number(self.column(letter))
    }

    fn flag(&self, row: &GoldenRow<'_>, letter: u8) -> Result<bool, GoldenError> {
        match row.text(self.column(letter)) {
            "0" => Ok(false),
            "1" => Ok(true),
            other => {
                Err(row.garbled(self.column(letter), &format!("{other:?} is neither 0 nor 1")))
            }
        }
    }

    fn duration(&self, row: &GoldenRow<'_>, letter: u8) -> Result<Duration, GoldenError> {
        Ok(Duration::from_nanos(self.nanos(row, letter)?))
    }

    fn instant(&self, row: &GoldenRow<'_>, letter: u8) -> Result<Instant, GoldenError> {
        Ok(Instant::from_nanos(self.nanos(row, letter)?))
    }

    /// Reads a column of microseconds.
    fn nanos(&self, row: &GoldenRow<'_>, letter: u8) -> Result<u64, GoldenError> {
        let micros: u32 = row.number(self.column(letter))?;
        Ok(u64::from(micros) * 1_000)
    }
}

/// Replays the rows of all four kinds.
pub(super) fn replay(rows: &mut GoldenRows, tally: &mut GoldenTally) -> Result<(), GoldenError> {
    let [kind] = rows.columns(["kind"])?;
    let letters = Letters(rows.columns([
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s",
    ])?);
    while let Some(row) = rows.next()? {
        tally.row();
        match row.text(kind) {
            "prr_row" => {
                let recovery = match (letters.flag(&row, b'b')?, letters.flag(&row, b'c')?) {
                    (false, _) => RecoveryCause::Ecn,
                    (true, true) => RecoveryCause::Sack,
                    (true, false) => RecoveryCause::Duplicates,
                };
                let changed = match row.text(letters.column(b'd')) {
                    "0" => SackChange::None,
                    "1" => SackChange::NewData,
                    "2" => SackChange::NewLoss,
                    other => return Err(row.garbled(letters.column(b'd'), &format!("{other:?}"))),
                };
                let dup_acks = letters.number(&row, b'q')?;
                prr(&letters, &row, tally, recovery, changed, dup_acks)?;
            }
            // A whole recovery with SACK; column q is the driver's use of the window.
            "prr_episode" => {
                prr(&letters, &row, tally, RecoveryCause::Sack, SackChange::NewData, 0)?;
            }
            "rack_thresh" => thresh(&letters, &row, tally)?,
            "rack_undo" => undo(&letters, &row, tally)?,
            other => return Err(row.garbled(kind, &format!("{other:?} is not known"))),
        }
    }
    Ok(())
}

fn prr(
    letters: &Letters,
    row: &GoldenRow<'_>,
    tally: &mut GoldenTally,
    recovery: RecoveryCause,
    changed: SackChange,
    dup_acks: u64,
) -> Result<(), GoldenError> {
    let number = |letter| letters.number(row, letter);
    let una = number(b'l')?;
    let outstanding = number(b'n')?
        .checked_sub(una)
        .ok_or_else(|| row.garbled(letters.column(b'n'), "is below snd_una"))?;
    let mut prr = PrrFreeBsd {
        prr_delivered: number(b'h')?,
        prr_out: number(b'i')?,
        recover_fs: number(b'g')?,
    };
    let cwnd = prr.on_ack(
        PrrRule::Rfc6937bis,
        &PrrFreeBsdInput {
            recovery,
            changed,
            maxseg: number(b'e')?,
            ssthresh: number(b'f')?,
            delivered: number(b'j')?,
            sack_bytes_rexmit: number(b'k')?,
            nxt: number(b'm')? as i64 - una as i64,
            outstanding,
            recover: number(b'o')? as i64 - una as i64,
            pipe: number(b'p')? as i64,
            dup_acks,
        },
    );
    row.compare(tally, letters.column(b'r'), prr.prr_delivered);
    row.compare(tally, letters.column(b's'), cwnd);
    Ok(())
}

fn thresh(
    letters: &Letters,
    row: &GoldenRow<'_>,
    tally: &mut GoldenTally,
) -> Result<(), GoldenError> {
    let mode = letters.number(row, b'i')?;
    let mut rack = RackFreeBsd::new(ThreshParams {
        std_based: mode & 1 != 0,
        use_dsack: mode & 2 != 0,
        pkt_delay: letters.duration(row, b'f')?,
        reorder_shift: row.number(letters.column(b'g'))?,
        reorder_fade: letters.duration(row, b'e')?,
        ..ThreshParams::DEFAULT
    });
    rack.set_num_dsack(row.number(letters.column(b'h'))?);
    if letters.number(row, b'd')? != 0 {
        rack.on_reordering(letters.instant(row, b'd')?);
    }
    let thresh = rack.thresh(letters.duration(row, b'b')?, letters.instant(row, b'c')?);
    row.compare(tally, letters.column(b'j'), thresh.as_micros());
    row.compare(tally, letters.column(b'k'), micros(rack.reorder_ts()));
    Ok(())
}

fn undo(
    letters: &Letters,
    row: &GoldenRow<'_>,
    tally: &mut GoldenTally,
) -> Result<(), GoldenError> {
    let number = |letter| letters.number(row, letter);
    let bytes = number(b'j')?
        .checked_sub(number(b'i')?)
        .ok_or_else(|| row.garbled(letters.column(b'j'), "is below the start"))?;
    let arrived = ArrivedSegment {
        bytes,
        transmissions: row.number(letters.column(b'c'))?,
        was_passed: letters.flag(row, b'e')?,
        sent_at: letters.instant(row, b'g')?,
    };
    let (now, in_recovery) = (letters.instant(row, b'h')?, letters.flag(row, b'd')?);
    let mut undo = RackUndo::new(row.number(letters.column(b'b'))?);
    if in_recovery {
        undo.begin(number(b'n')?);
    }
    undo.on_retransmitted(number(b'l')?);
    let arrival =
        undo.on_arrival(&arrived, letters.flag(row, b'k')?, letters.duration(row, b'f')?, now);
    let (reordered, ssthresh, stays) = match arrival {
        UndoDecision::NoUndo => (false, number(b'm')?, in_recovery),
        UndoDecision::Reordered => (true, number(b'm')?, in_recovery),
        UndoDecision::Undone { ssthresh } => (true, ssthresh, false),
    };
    row.compare(tally, letters.column(b'o'), u8::from(reordered));
    row.compare(tally, letters.column(b'p'), undo.rxt_bytes());
    row.compare(tally, letters.column(b'q'), ssthresh);
    row.compare(tally, letters.column(b'r'), u8::from(stays));
    row.compare(tally, letters.column(b's'), micros(reordered.then_some(now)));
    Ok(())
}

/// Converts an instant to microseconds; `None` is 0.
fn micros(at: Option<Instant>) -> u64 {
    at.map_or(0, |at| at.as_nanos() / 1_000)
}
