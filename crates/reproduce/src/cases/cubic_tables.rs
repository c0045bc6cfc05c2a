//! Case `cubic-tables`: tables 1 to 3 of RFC 9438.
//!
//! Tables 1 and 2 have the average window of CUBIC for three values of `C`, table 3 the loss rate at
//! which it reaches a throughput. The rows are those of the formula; some cells of `C` = 0.4 are also
//! measured with Linux's CUBIC. The columns of HSTCP are those of its formula (RFC 3649, section 5);
//! no modelled stack has it.

use ::theory::aimd::Aimd;
use ::theory::cubic::{C, average_window, loss_for_window};
use record::{Event, EventSource, Recorder, SenderState};
use units::{Instant, maths};

use super::{CaseError, CaseInput, CaseRow, Measured, Workers, load, run};

/// The scenario of the measured cells.
const SCENARIO: &str = samples::text("cubic-tables");
/// Payload of a segment with timestamps.
const MSS: f64 = 1_448.0;
/// Seconds of a run that are not measured: slow start, and the first cycles.
const WARM_UP_S: u64 = 50;

/// Loss rates of tables 1 and 2.
const LOSS: [f64; 7] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];
/// The column of Reno in both tables.
const RENO: [f64; 7] = [12.0, 38.0, 120.0, 379.0, 1_200.0, 3_795.0, 12_000.0];

/// The column of HSTCP in both tables.
const HSTCP: [f64; 7] = [12.0, 38.0, 263.0, 1_795.0, 12_280.0, 83_981.0, 574_356.0];

/// A column of CUBIC: round trip in seconds, `C`, and the published windows.
const COLUMNS: [(f64, f64, [f64; 7]); 6] = [
    (0.1, 0.04, [12.0, 38.0, 120.0, 593.0, 3_332.0, 18_740.0, 105_383.0]),
    (0.1, 0.4, [12.0, 38.0, 187.0, 1_054.0, 5_926.0, 33_325.0, 187_400.0]),
    (0.1, 4.0, [12.0, 59.0, 333.0, 1_874.0, 10_538.0, 59_261.0, 333_250.0]),
    (0.01, 0.04, [12.0, 38.0, 120.0, 379.0, 1_200.0, 3_795.0, 18_740.0]),
    (0.01, 0.4, [12.0, 38.0, 120.0, 379.0, 1_200.0, 5_926.0, 33_325.0]),
    (0.01, 4.0, [12.0, 38.0, 120.0, 379.0, 1_874.0, 10_538.0, 59_261.0]),
];

/// Table 3: Mbit/s of 1500-byte packets at 0.1 s, the window, and the loss rates of Reno, HSTCP and
/// CUBIC.
const TABLE_3: [(u32, f64, f64, f64, f64); 5] = [
    (1, 8.3, 2.0e-2, 2.0e-2, 2.0e-2),
    (10, 83.3, 2.0e-4, 3.9e-4, 2.9e-4),
    (100, 833.3, 2.0e-6, 2.5e-5, 1.4e-5),
    (1_000, 8_333.3, 2.0e-8, 1.5e-6, 6.3e-7),
    (10_000, 83_333.3, 2.0e-10, 1.0e-7, 2.9e-8),
];

/// The window of HSTCP at this loss rate, 0.12 / p^0.835 (RFC 3649, section 5); below 38 segments it is
/// that of Reno.
fn hstcp_window(p: f64) -> f64 {
    0.12 / maths::pow(p, 0.835)
}

/// The loss rate at which HSTCP has this window.
fn hstcp_loss(window: f64) -> f64 {
    maths::pow(0.12 / window, 1.0 / 0.835)
}

const RENO_NOTE: &str = "the table takes Reno's window from RFC 3649, 1.2/sqrt(p); sqrt(3/(2p)), which \
                         RFC 9438 has in section 4.3, is 2 % more";

/// Window from which HSTCP differs from Reno.
const LEAST_HSTCP: f64 = 38.0;

/// Runs the case.
pub(super) fn measure(workers: &Workers<'_>) -> Result<Measured, CaseError> {
    let mut rows = Vec::new();
    for (p, published) in LOSS.into_iter().zip(RENO) {
        let window = Aimd::RENO.window(p);
        let name = format!("tables 1 and 2, Reno, p = {p:e}");
        rows.push(CaseRow::predicted(name, "MSS", Some(published), Some(window)).note(RENO_NOTE));
    }
    for (p, published) in LOSS.into_iter().zip(HSTCP) {
        let name = format!("tables 1 and 2, HSTCP, p = {p:e}");
        rows.push(if hstcp_window(p) < LEAST_HSTCP {
            CaseRow::predicted(name, "MSS", Some(published), Some(Aimd::RENO.window(p)))
                .note(RENO_NOTE)
        } else {
            let (low, high) = (published - 0.5, published + 0.5);
            CaseRow::band(name, "MSS", published, Some(hstcp_window(p)), low, high)
        });
    }
    for (rtt, c, column) in COLUMNS {
        let table = if rtt > 0.05 { 1 } else { 2 };
        for (p, published) in LOSS.into_iter().zip(column) {
            let name = format!("table {table}, CUBIC, C = {c}, p = {p:e}");
            rows.push(cell(name, average_window(c, rtt, p), Aimd::RENO.window(p), published));
        }
    }
    rows.extend(table_3());
    rows.extend(stack(workers)?);
    Ok(Measured { knobs: knobs(), rows, exhibit: String::new() })
}

/// A cell of tables 1 and 2. Where the curve is above Reno's window, the table has the curve's,
/// rounded to a segment; elsewhere Reno's.
fn cell(name: String, curve: f64, reno: f64, published: f64) -> CaseRow {
    if curve > reno {
        let (low, high) = (published - 0.5, published + 0.5);
        return CaseRow::band(name, "MSS", published, Some(curve), low, high);
    }
    CaseRow::predicted(name, "MSS", Some(published), Some(reno)).note(RENO_NOTE)
}

fn table_3() -> Vec<CaseRow> {
    let mut rows = Vec::new();
    for (mbits, window, of_reno, of_hstcp, of_cubic) in TABLE_3 {
        let reno = 1.5 / (window * window);
        let name = format!("table 3, Reno, {mbits} Mbit/s");
        rows.push(CaseRow::predicted(name, "", Some(of_reno), Some(reno)).note(RENO_NOTE));
        let name = format!("table 3, HSTCP, {mbits} Mbit/s");
        let curve = if window < LEAST_HSTCP { 0.0 } else { hstcp_loss(window) };
        rows.push(loss_cell(name, curve, reno, of_hstcp));
        let name = format!("table 3, CUBIC, {mbits} Mbit/s");
        rows.push(loss_cell(name, loss_for_window(C, 0.1, window), reno, of_cubic));
    }
    rows
}

/// A loss rate of table 3: that of the curve where it is above Reno's.
fn loss_cell(name: String, curve: f64, reno: f64, published: f64) -> CaseRow {
    if curve > reno {
        // Two digits are published: up to one unit of the last.
        let unit = 0.1 * power_of_ten_below(published);
        return CaseRow::band(name, "", published, Some(curve), published - unit, published + unit);
    }
    CaseRow::predicted(name, "", Some(published), Some(reno)).note(RENO_NOTE)
}

/// The largest power of ten that is at most the number.
fn power_of_ten_below(number: f64) -> f64 {
    let mut power = 1.0;
    while power > number {
        power /= 10.0;
    }
    power
}

/// Bytes that the receiver read after the warm-up.
#[derive(Debug, Default)]
struct ReadBytes(u64);

impl Recorder for ReadBytes {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event
            && at.as_nanos() >= WARM_UP_S * 1_000_000_000
        {
            self.0 += u64::from(bytes);
        }
    }
}

impl sim::Observer for ReadBytes {}

/// The packets lost at the start, so that the window reaches its cycle from below.
const EARLY_LOSSES: &str = "path.0.forward.2.loss.packets=[100, 200, 300, 400, 500, 600, 700, 800, \
                            900, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000, \
                            2100, 2200, 2300, 2400, 2500, 2600, 2700, 2800, 2900, 3000]";

/// Cells of `C` = 0.4, measured with Linux's CUBIC: the goodput of 150 s as a window.
fn stack(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let cells = [
        (0.1, 1_000, 38.0, false),
        (0.1, 1_000, 38.0, true),
        (0.1, 10_000, 187.0, false),
        (0.1, 10_000, 187.0, true),
        (0.01, 1_000, 38.0, false),
        (0.01, 10_000, 120.0, false),
    ];
    workers.map(&cells, |&(rtt, one_in, published, from_below)| {
        let delay = if rtt > 0.05 { "50ms" } else { "5ms" };
        let mut set = vec![
            format!("path.0.forward.1.loss.every={one_in}"),
            format!("path.0.forward.3.delay={delay}"),
            format!("path.0.return.0.delay={delay}"),
        ];
        if from_below {
            set.push(EARLY_LOSSES.to_owned());
        }
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let loaded = load(SCENARIO, "cubic-tables.toml", &set)?;
        let mut read = ReadBytes::default();
        run(&loaded, &mut read, workers)?;
        let window = read.0 as f64 / (200 - WARM_UP_S) as f64 * rtt / MSS;
        let table = if rtt > 0.05 { 1 } else { 2 };
        let below = if from_below { ", from below" } else { "" };
        let name = format!("table {table}, CUBIC, C = 0.4, p = 1/{one_in}, the stack{below}");
        Ok(
            CaseRow::predicted(name, "MSS", Some(published), Some(window)).by("linux-6.18").note(
                "the mean window of the stack over 150 s. Linux counts the window in whole segments, and \
                 within (1/C)^(1/3) = 1.36 s of K the curve is less than a segment from its plateau: \
                 a loss at any of these times leads to the same window again. So each window of a \
                 range repeats itself. After slow start the window comes from above and remains at \
                 the upper end of the range; after losses at the start (from below) it remains lower. \
                 The formula has its loss at K. Linux 6.12.117 in virtual time has 45.8, from below \
                 37.1 (p = 1/1000), and 214.3, from below 202.2 (p = 1/10000)",
            ),
        )
    })
}

fn knobs() -> Vec<CaseInput> {
    vec![
        CaseInput::new("beta_cubic", "0.7", "the document"),
        CaseInput::new("C", "0.04, 0.4 and 4", "the document"),
        CaseInput::new(
            "host.sender.profile",
            "linux-6.18 with cubic, C = 0.4",
            "declared: a stack with the constants of the document",
        ),
        CaseInput::new("loss", "every 1000th or 10000th packet", "the document: p"),
        CaseInput::new(
            "path",
            "10 Gbit/s, a queue of 10,000 packets, 50 or 5 ms each way",
            "declared: neither the link nor the buffers limit the window",
        ),
    ]
}
