//! `ackclock table`: the runs of a sweep as a pivot table.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use pages::sweep_page::{MOST, SweepPage};
use runner::sweep::csv::{FIGURES, Scope, SweepFigure};
use runner::sweep::pivot::{FLOW, FlowSelection, LineChartError, Pivot, PivotSpec};
use scenario::nearest;

use crate::cli::TableArgs;
use crate::failure::{Failure, print_error};
use crate::output::{OutFile, print};
use crate::store::{read_about, rows};
use crate::visible::ShownPath as _;

/// Longest table that a sweep prints at its end, in lines.
const MANY: usize = 60;

pub(super) fn run(args: &TableArgs) -> Result<ExitCode, Failure> {
    super::needs_features(args.parquet.is_some(), args.png.is_some())?;
    let about = read_about(&args.dir)?;
    let about_title = about.title();
    let keys = about.axes.concat();
    let all_known = |asked: &[String]| asked.iter().try_for_each(|key| known(key, &keys));
    let (mut side, mut top) = (split(&args.rows), split(&args.cols));
    all_known(&side)?;
    all_known(&top)?;
    let runs = about.runs;
    if args.rows.is_none() && args.cols.is_none() {
        (side, top) = split_axes(about.axes);
    }
    let figure = SweepFigure::named(&args.value).ok_or_else(|| {
        let names = FIGURES.map(|figure| figure.short());
        let failure = Failure::new(format!("--value: unknown figure `{}`", args.value));
        failure.hint(match nearest(&args.value, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("figures are {}", names.join(", ")),
        })
    })?;
    let flows = match (&args.flow, args.sum) {
        (Some(name), _) => FlowSelection::One(name.clone()),
        (None, true) if figure.scope == Scope::Flow => {
            let message = format!("--sum: {} cannot be summed over flows", figure.short());
            return Err(Failure::new(message).hint("without --sum each flow has its own cells"));
        }
        (None, true) => FlowSelection::Sum,
        (None, false) => FlowSelection::Each,
    };
    let pivot = Pivot::new(PivotSpec { rows: side, columns: top, figure, flows });
    let (pivot, count) = fill(&args.dir, pivot)?;
    if count < runs {
        print_error(&format!("{count} of {runs} runs are done\n"));
    }
    let cells = pivot.cells();
    if let (Some(flow), true, true) = (&args.flow, cells.is_empty(), count > 0) {
        return Err(Failure::new(format!("--flow: no run has a flow `{flow}`")));
    }
    if let Some(path) = &args.report {
        report(&args.dir, path, OutFile::create(path)?)?;
    }
    if let Some(path) = &args.parquet {
        write_parquet(&args.dir, path)?;
    }
    let png_path = args.png.as_deref();
    if args.lines && args.svg.is_none() && png_path.is_none() {
        return Err(Failure::new("--lines needs a chart: --svg FILE"));
    }
    if args.svg.is_some() || png_path.is_some() {
        let mut title = about_title;
        if title.is_empty() {
            title = args.dir.shown();
        }
        let map = draw(&pivot, &title, args.lines)?;
        if let Some(path) = &args.svg {
            write(path, map.as_bytes())?;
        }
        if let Some(path) = png_path {
            write(path, &crate::png::of_svg(&map)?)?;
        }
    }
    if args.json {
        print(&(serde_json::to_string_pretty(&cells).unwrap_or_default() + "\n"))?;
    } else {
        print(&pivot.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws the table.
fn draw(pivot: &Pivot, title: &str, lines_wanted: bool) -> Result<String, Failure> {
    let subtitle = format!("ackclock {}", env!("CARGO_PKG_VERSION"));
    match pivot.lines(title, &subtitle) {
        Ok(lines) if lines_wanted || !pivot.has_columns() => Ok(lines),
        Err(LineChartError::Side) if lines_wanted => {
            let failure = Failure::new("--lines: the row axis is not numeric");
            Err(failure
                .hint("--rows needs a single axis of quantities of one kind, such as delays"))
        }
        Err(LineChartError::Columns(count)) if lines_wanted => {
            Err(Failure::new(format!("--lines: {count} lines are too many to distinguish")))
        }
        _ => Ok(pivot.heat_map(title, &subtitle)),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut out = OutFile::create(path)?;
    out.write_all(bytes).map_err(|error| Failure::file("write", path, &error))?;
    out.commit()
}

/// Returns an error: this build has no Parquet support; releases have it.
#[cfg(not(feature = "parquet"))]
pub(super) fn write_parquet(_: &Path, _: &Path) -> Result<(), Failure> {
    super::needs_features(true, false)
}

/// Writes the runs in `dir` as a Parquet table.
#[cfg(feature = "parquet")]
pub(super) fn write_parquet(dir: &Path, path: &Path) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::file("write", path, error);
    let about = read_about(dir)?;
    let out = OutFile::create(path)?;
    let table = export::columns::SweepParquet::new(&about.axes.concat(), &about.sha256, out);
    let mut table = table.map_err(|error| failed(&error))?;
    let mut wrong = None;
    rows(dir, |row| {
        if wrong.is_none() {
            wrong = table.add(&row).err();
        }
    })?;
    match wrong {
        Some(error) => Err(failed(&error)),
        None => table.finish().map_err(|error| failed(&error))?.commit(),
    }
}

/// Writes the page of the sweep in `dir`.
pub(super) fn report(dir: &Path, path: &Path, mut out: OutFile) -> Result<(), Failure> {
    let about = read_about(dir)?;
    let mut page = SweepPage::new(about.axes.clone());
    let mut full = false;
    let count = rows(dir, |row| full |= page.add(&row).is_err())?;
    if full {
        let message = format!("a page holds {MOST} flows of runs, {} has more", dir.shown());
        return Err(Failure::new(message).hint("sweep a part of the grid, with --only"));
    }
    let (side, top) = split_axes(about.axes.clone());
    let figure = SweepFigure::named("goodput").unwrap_or(FIGURES[0]);
    let (means, _) = fill(
        dir,
        Pivot::new(PivotSpec { rows: side, columns: top, figure, flows: FlowSelection::Each }),
    )?;
    let mut title = about.title();
    if title.is_empty() {
        title = dir.shown();
    }
    let mut facts = vec![("runs".to_owned(), count.to_string())];
    if count < about.runs {
        facts[0].1 = format!("{count} of {}", about.runs);
    }
    facts.push(("sweep sha256".to_owned(), about.sha256));
    let page = page.page(&title, facts, &means);
    page.write(&mut out).map_err(|error| Failure::file("write", path, &error))?;
    out.commit()
}

/// The summary of a finished sweep.
pub(super) fn summary(dir: &Path, json: bool) -> Result<String, Failure> {
    let about = read_about(dir)?;
    let (side, top) = split_axes(about.axes);
    let figure = SweepFigure::named("goodput").unwrap_or(FIGURES[0]);
    let (pivot, count) = fill(
        dir,
        Pivot::new(PivotSpec { rows: side, columns: top, figure, flows: FlowSelection::Each }),
    )?;
    if json {
        return Ok(serde_json::to_string_pretty(&pivot.cells()).unwrap_or_default() + "\n");
    }
    let table = pivot.text();
    let table = match table.lines().count() {
        lines if lines > MANY => format!("{lines} lines: ackclock table {}\n", dir.shown()),
        _ => table,
    };
    Ok(format!("{count} runs in {}\n\ngoodput of each flow\n{table}", dir.shown()))
}

/// Splits the axes: all but the last for the rows, the last for the columns; a single axis for the
/// rows.
fn split_axes(mut axes: Vec<Vec<String>>) -> (Vec<String>, Vec<String>) {
    let top = if axes.len() > 1 { axes.pop() } else { None };
    (axes.concat(), top.unwrap_or_default())
}

fn fill(dir: &Path, mut pivot: Pivot) -> Result<(Pivot, u64), Failure> {
    let count = rows(dir, |row| pivot.add(&row))?;
    Ok((pivot, count))
}

fn split(keys: &Option<String>) -> Vec<String> {
    let keys = keys.as_deref().unwrap_or_default().split(',').map(str::trim);
    keys.filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

fn known(key: &str, keys: &[String]) -> Result<(), Failure> {
    if key == "seed" || key == FLOW || keys.iter().any(|known| known == key) {
        return Ok(());
    }
    let failure = Failure::new(format!("the sweep has no axis `{key}`"));
    Err(failure.hint(match nearest(key, keys.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("axes are {}, seed and flow", keys.join(", ")),
    }))
}
