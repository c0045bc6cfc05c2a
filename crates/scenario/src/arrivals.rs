//! Groups of connections: `count` and `arrivals` of a flow, and the sizes of `transfer`.

use sim::scenario::{App, Arrivals, CDF_WHOLE, TransferSizes};
use units::{Bytes, Duration};

use super::flow::FlowTable;
use super::keys::{Key, Located, ScenarioReader};
use super::kinds::{DurationType, SizeType, TextType};
use super::source::SpannedError;
use super::table::table;
use crate::units_text::MAX_SIZE;

/// Maximum number of connections of a group.
pub(super) const MOST_CONNECTIONS: u64 = 10_000_000;

const INTERVAL: DurationType = DurationType { least: Duration::from_nanos(1), default_unit: "ms" };

static POISSON: Key<DurationType> = Key::optional(
    "poisson",
    INTERVAL,
    "",
    "a Poisson process: exponentially distributed intervals with this mean",
);
static EVERY: Key<DurationType> = Key::optional("every", INTERVAL, "", "a fixed interval");
static TRACE: Key<TextType> = Key::optional(
    "trace",
    TextType,
    "",
    "a file beside this one, a line for each connection: its time in seconds after `start`, in order, \
     and optionally its size in bytes, for `transfer`; text after `#` is a comment",
);

table! {
    /// When the connections of a flow arrive.
    pub ArrivalsTable: ARRIVALS_SECTION = "`arrivals`" {
        poisson: Duration = POISSON,
        every: Duration = EVERY,
        trace: String = TRACE,
    }
    one_of: &["poisson", "every", "trace"],
    elsewhere: |key| match key {
        "mean" | "exponential" => Some("write poisson = \"10ms\" for the mean interval"),
        "count" | "start" => Some("`count` and `start` belong to the flow"),
        _ => None,
    },
}

pub(super) static CDF: Key<TextType> = Key::optional(
    "cdf",
    TextType,
    "",
    "a cumulative distribution: `preset:web-search`, `preset:data-mining`, `preset:hadoop`, or a file \
     beside this one, each line a size in bytes and the percentage of transfers of at most this size; \
     sizes between two lines are uniform",
);
pub(super) static MEAN: Key<SizeType> = Key::optional(
    "mean",
    SizeType { least: Bytes(1), most: MAX_SIZE },
    "",
    "an exponential distribution with this mean",
);
static SIZES_TRACE: Key<TextType> =
    Key::optional("trace", TextType, "", "the sizes in the second column of a file of `arrivals`");

table! {
    /// Sizes of the transfers of a flow.
    pub TransferTable: TRANSFER_SECTION = "`transfer`" {
        cdf: String = CDF,
        mean: Bytes = MEAN,
        trace: String = SIZES_TRACE,
    }
    one_of: &["cdf", "mean", "trace"],
    elsewhere: |key| match key {
        "bytes" | "size" => Some("a fixed size is written bulk = \"1MB\""),
        "sizes" | "distribution" => Some("write cdf = \"preset:web-search\" or the name of a file"),
        _ => None,
    },
}

/// The connections that follow a flow.
#[derive(Debug, Clone)]
pub(super) struct Replication {
    pub(super) count: usize,
    /// Connections of each: those of a web page.
    pub(super) connections: usize,
    pub(super) arrivals: Arrivals,
    pub(super) sizes: Option<TransferSizes>,
}

/// Reads the connections of a flow; `None` if it is a single one.
pub(super) fn replication(
    flow: &FlowTable,
    app: Option<&App>,
    reader: &mut ScenarioReader,
) -> Option<Replication> {
    let transfer = flow.transfer.as_ref();
    let connections = app.map_or(1, App::connections);
    if flow.count.is_none() && flow.arrivals.is_none() && transfer.is_none() && connections == 1 {
        return None;
    }
    let arrivals = flow.arrivals.as_ref().map(|table| (table.span, arrivals(&table.value, reader)));
    let sizes = match transfer.map(|table| sizes(&table.value, reader)) {
        Some(None) => return None,
        Some(known) => known,
        None => None,
    };
    let listed = match &arrivals {
        Some((_, Some(Arrivals::Listed(times)))) => Some(times.len()),
        _ => None,
    };
    let count = match (&flow.count, listed, &arrivals) {
        (Some(count), Some(lines), _) if count.value as usize > lines => {
            let message = format!("the trace has only {lines} connections");
            reader.report(SpannedError::new(count.span, message));
            return None;
        }
        (Some(count), ..) => count.value as usize,
        (None, Some(lines), _) => lines,
        (None, None, Some((span, _))) => {
            let message = "`arrivals` needs the `count` of connections";
            let fault = SpannedError::new(*span, message);
            reader.report(fault.hint("write count = 1000 beside it".to_owned()));
            return None;
        }
        (None, None, None) => 1,
    };
    let arrivals = match arrivals {
        Some((_, arrivals)) => arrivals?,
        None => Arrivals::Together,
    };
    let start = flow.start.map_or(Duration::ZERO, |start| start.value);
    if let (Arrivals::Listed(times), Some(table), Some(end)) =
        (&arrivals, &flow.arrivals, reader.end)
        && let Some(line) = times[..count].iter().position(|time| start + *time >= end)
    {
        let message =
            format!("connection number {line} of this trace starts after the end of the run");
        let fault = SpannedError::new(table.span, message);
        reader.report(fault.expected(format!("times before {end}")));
        return None;
    }
    Some(Replication { count, connections, arrivals, sizes })
}

fn arrivals(table: &ArrivalsTable, reader: &mut ScenarioReader) -> Option<Arrivals> {
    if let Some(mean) = &table.poisson {
        return Some(Arrivals::Poisson(mean.value));
    }
    if let Some(every) = &table.every {
        return Some(Arrivals::Every(every.value));
    }
    let name = table.trace.as_ref()?;
    let lines = read(name, "trace", parse_trace, reader)?;
    Some(Arrivals::Listed(lines.iter().map(|(time, _)| *time).collect()))
}

fn sizes(table: &TransferTable, reader: &mut ScenarioReader) -> Option<TransferSizes> {
    if let Some(name) = &table.trace {
        let lines = read(name, "trace", parse_trace, reader)?;
        let sizes: Option<Vec<u64>> = lines.iter().map(|(_, size)| *size).collect();
        if sizes.is_none() {
            let message = format!("{} has lines without a size", name.value);
            reader.report(SpannedError::new(name.span, message));
        }
        return Some(TransferSizes::Listed(sizes?.into()));
    }
    distribution(table.cdf.as_ref(), table.mean.as_ref(), reader)
}

/// The distribution of the key `cdf` or `mean`.
pub(super) fn distribution(
    cdf: Option<&Located<String>>,
    mean: Option<&Located<Bytes>>,
    reader: &mut ScenarioReader,
) -> Option<TransferSizes> {
    if let Some(mean) = mean {
        return Some(TransferSizes::Exponential(mean.value));
    }
    let name = cdf?;
    if let Some(preset) = name.value.strip_prefix(super::files::PRESET) {
        let known = PRESETS.iter().find(|(known, _)| *known == preset);
        if known.is_none() {
            let names = PRESETS.map(|(name, _)| format!("preset:{name}")).join(", ");
            let message = format!("unknown distribution {:?}", name.value);
            reader.report(SpannedError::new(name.span, message).expected(names));
        }
        let points = known?.1.iter().map(|&(size, tenths)| (size, tenths * (CDF_WHOLE / 1_000)));
        return Some(TransferSizes::Cdf(points.collect()));
    }
    read(name, "distribution", parse_cdf, reader).map(|points| TransferSizes::Cdf(points.into()))
}

/// Reads and parses a file that the scenario names.
fn read<T>(
    name: &Located<String>,
    what: &str,
    parse: impl Fn(&str) -> Result<Vec<T>, String>,
    reader: &mut ScenarioReader,
) -> Option<Vec<T>> {
    let parsed = reader
        .files
        .text(&name.value)
        .and_then(|text| parse(&text).map_err(|wrong| format!("{}{wrong}", name.value)));
    match parsed {
        Ok(lines) => Some(lines),
        Err(wrong) => {
            reader.report(SpannedError::new(name.span, format!("invalid {what}: {wrong}")));
            None
        }
    }
}

/// The non-empty lines of a file without comments, with their numbers from 1, split into fields.
fn fields(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().zip(1..).map(|(line, number)| {
        let line = line.split_once('#').map_or(line, |(line, _)| line);
        let separated = |c: char| c.is_whitespace() || c == ',';
        (number, line.split(separated).filter(|field| !field.is_empty()).collect::<Vec<_>>())
    });
    lines.filter(|(_, fields)| !fields.is_empty())
}

/// Parses times in seconds, each with an optional size. Errors begin with the number of the line.
fn parse_trace(text: &str) -> Result<Vec<(Duration, Option<u64>)>, String> {
    let mut lines: Vec<(Duration, Option<u64>)> = Vec::new();
    for (number, fields) in fields(text) {
        let time = crate::units_text::duration(&format!("{}s", fields[0])).map_err(|_| {
            format!(":{number}: expected a time in seconds such as 0.25, found {:?}", fields[0])
        })?;
        if lines.last().is_some_and(|(last, _)| *last > time) {
            return Err(format!(":{number}: this time is earlier than that of the line before"));
        }
        let size = match fields.get(1) {
            None => None,
            Some(text) => {
                match text.parse().ok().filter(|size| (1..=MAX_SIZE.get()).contains(size)) {
                    Some(size) => Some(size),
                    None => {
                        return Err(format!(":{number}: expected a size in bytes, found {text:?}"));
                    }
                }
            }
        };
        lines.push((time, size));
    }
    if lines.is_empty() { Err(": no connection".to_owned()) } else { Ok(lines) }
}

/// Parses a cumulative distribution.
fn parse_cdf(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    for (number, fields) in fields(text) {
        let at = |wrong: &str| format!(":{number}: {wrong}");
        let [size, .., percent] = &fields[..] else {
            return Err(at("expected a size in bytes and a percentage"));
        };
        let size: u64 = size.parse().map_err(|_| at("expected a size in whole bytes"))?;
        let percent: f64 = percent.parse().map_err(|_| at("expected a percentage"))?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(at("expected a percentage from 0 to 100"));
        }
        let part = (percent * (CDF_WHOLE / 100) as f64).round() as u64;
        if points.last().is_some_and(|&(before, below)| before > size || below > part) {
            return Err(at("sizes and percentages must not decrease"));
        }
        points.push((size, part));
    }
    match points.last() {
        Some(&(_, CDF_WHOLE)) => Ok(points),
        Some(_) => Err(": the last percentage must be 100".to_owned()),
        None => Err(": no line".to_owned()),
    }
}

/// Published distributions: sizes in bytes with the fraction of transfers of at most this size, in
/// thousandths. They are read from figures, as simulators use them.
type Preset = (&'static str, &'static [(u64, u64)]);

const PRESETS: [Preset; 3] = [
    // Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4; the points of the evaluation
    // of HPCC (Li et al., SIGCOMM 2019).
    (
        "web-search",
        &[
            (0, 0),
            (10_000, 150),
            (20_000, 200),
            (30_000, 300),
            (50_000, 400),
            (80_000, 530),
            (200_000, 600),
            (1_000_000, 700),
            (2_000_000, 800),
            (5_000_000, 900),
            (10_000_000, 970),
            (30_000_000, 1_000),
        ],
    ),
    // Greenberg et al., "VL2: A Scalable and Flexible Data Center Network", SIGCOMM 2009, figure 2;
    // the points of the evaluation of pFabric (Alizadeh et al., SIGCOMM 2013), in packets of 1,460 B.
    (
        "data-mining",
        &[
            (1_460, 500),
            (2_920, 600),
            (4_380, 700),
            (10_220, 800),
            (389_820, 900),
            (3_076_220, 950),
            (97_333_820, 990),
            (973_333_820, 1_000),
        ],
    ),
    // Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, figure 6; the points
    // of the evaluation of HPCC.
    (
        "hadoop",
        &[
            (0, 0),
            (100, 10),
            (200, 20),
            (300, 50),
            (350, 150),
            (400, 200),
            (500, 300),
            (600, 400),
            (700, 500),
            (1_000, 600),
            (2_000, 670),
            (7_000, 700),
            (30_000, 720),
            (50_000, 820),
            (80_000, 870),
            (120_000, 900),
            (300_000, 950),
            (1_000_000, 975),
            (2_000_000, 990),
            (10_000_000, 1_000),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// pFabric's scripts give means of 1,138 and 5,117 packets of 1,460 B for points in packets; HPCC's
    /// points are rounded to 10 kB, so that the mean is about 3 % above.
    #[test]
    fn published_distributions_have_their_published_means() {
        let mean = |name| {
            let (_, points) = PRESETS.iter().find(|(known, _)| *known == name).unwrap();
            let points = points.iter().map(|&(size, part)| (size, part * (CDF_WHOLE / 1_000)));
            TransferSizes::Cdf(points.collect()).mean()
        };
        assert!((1.0..1.05).contains(&(mean("web-search") / (1_138.0 * 1_460.0))));
        assert!((mean("data-mining") / (5_117.0 * 1_460.0) - 1.0).abs() < 0.001);
    }

    #[test]
    fn files_are_checked_line_by_line() {
        let sizes = parse_cdf("0 0\n1000, 25 # small\n\n5000 100\n").unwrap();
        assert_eq!(sizes, [(0, 0), (1_000, CDF_WHOLE / 4), (5_000, CDF_WHOLE)]);
        let wrong = |text: &str| parse_cdf(text).unwrap_err();
        assert_eq!(wrong("0 0\n5 50\n4 100"), ":3: sizes and percentages must not decrease");
        assert_eq!(wrong("0 0\n5 50"), ": the last percentage must be 100");
        assert_eq!(wrong("5 101"), ":1: expected a percentage from 0 to 100");
        let times = parse_trace("0 1000\n0.25 30\n").unwrap();
        assert_eq!(times[1], (Duration::from_millis(250), Some(30)));
        let wrong = |text: &str| parse_trace(text).unwrap_err();
        assert_eq!(wrong("1\n0.5"), ":2: this time is earlier than that of the line before");
        assert_eq!(wrong("-1"), ":1: expected a time in seconds such as 0.25, found \"-1\"");
        assert_eq!(wrong("1 0"), ":1: expected a size in bytes, found \"0\"");
    }
}
