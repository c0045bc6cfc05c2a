//! Published cases and throughput formulas.

use core::num::NonZeroUsize;

use ::reproduce::cases::text::render;
use ::reproduce::cases::{CASES, Case, CaseError, CaseReport, Workers, find};
use ::theory::aimd::Aimd;
use ::theory::sawtooth::ExtraRtts;
use ::theory::{Path, TheoryError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use runner::theory_report::{self, Model, Pattern, Trial};
use units::Duration;

use crate::errors::{RunError, wrong_scenario};
use crate::watch::watch;

/// Names of the published cases.
#[pyfunction]
pub(crate) fn cases() -> Vec<&'static str> {
    CASES.iter().map(|case| case.id).collect()
}

/// Runs published cases, all for `None`; returns the report as JSON, as in `ackclock reproduce
/// --json`, and each case as text.
#[pyfunction]
#[pyo3(signature = (names=None, progress=None))]
pub(crate) fn reproduce(
    py: Python<'_>,
    names: Option<Vec<String>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let chosen: Vec<&Case> = match names {
        None => CASES.iter().collect(),
        Some(names) => names
            .iter()
            .map(|name| {
                find(name).ok_or_else(|| {
                    let all: Vec<_> = CASES.iter().map(|case| case.id).collect();
                    let message = format!("{name:?} is not a case: expected {}", all.join(" or "));
                    PyValueError::new_err(message)
                })
            })
            .collect::<PyResult<_>>()?,
    };
    let results = watch(py, chosen.len() as u64, progress, |watched| {
        let mut report = CaseReport::new();
        let workers = Workers::new(threads(), watched.stop());
        for (done, case) in chosen.iter().enumerate() {
            if watched.reached(done as u64).is_break() {
                break;
            }
            report.cases.push(case.on(&workers)?);
        }
        let _ = watched.reached(chosen.len() as u64);
        Ok::<_, CaseError>(report)
    })?;
    let report = results.map_err(|error| RunError::new_err(error.to_string()))?;
    Ok((report.to_json(), report.cases.iter().map(render).collect()))
}

/// As many threads as the machine has processors.
pub(crate) fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Evaluates a formula for a path, as JSON and as text. Quantities are strings with units.
#[pyfunction]
#[pyo3(signature = (model, mss, rtt, loss, rate=None, window=None, extra_rtts=None, ack_delay=None,
    ack_every=None, rto=None, alpha=None, beta=None, w_max=None, run=None, cc=None, random=false, seed=1))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn theory(
    py: Python<'_>,
    model: &str,
    mss: &str,
    rtt: &str,
    loss: &str,
    rate: Option<&str>,
    window: Option<&str>,
    extra_rtts: Option<f64>,
    ack_delay: Option<&str>,
    ack_every: Option<u32>,
    rto: Option<&str>,
    alpha: Option<f64>,
    beta: Option<f64>,
    w_max: Option<f64>,
    run: Option<String>,
    cc: Option<String>,
    random: bool,
    seed: u64,
) -> PyResult<(String, String)> {
    use scenario::units_text as read;
    let mut path = Path::new(
        quantity("mss", mss, read::size)?,
        quantity("rtt", rtt, read::duration)?,
        quantity("loss", loss, read::share)?,
    )
    .map_err(refused)?;
    if let Some(rate) = rate {
        path = path.with_rate(quantity("rate", rate, read::rate)?);
    }
    if let Some(window) = window {
        path = path.with_window(quantity("window", window, read::size)?).map_err(refused)?;
    }
    let mut ack_delay =
        ack_delay.map(|text| quantity("ack_delay", text, read::duration)).transpose()?;
    let mut cc = cc;
    let model = match model {
        "mathis" => Model::Mathis {
            extra: match (extra_rtts, ack_delay) {
                (Some(b), _) => Some(ExtraRtts::new(b).map_err(refused)?),
                (None, Some(delay)) => Some(ExtraRtts::every_other_packet(delay, &path)),
                (None, None) => None,
            },
        },
        "aimd" => {
            let beta = beta.unwrap_or(0.5);
            let measure = match alpha {
                Some(alpha) => Aimd::new(alpha, beta),
                None => Aimd::friendly(beta),
            };
            Model::Aimd(measure.map_err(refused)?)
        }
        "pftk" => {
            let packets_per_ack = ack_every.unwrap_or(2);
            // A receiver with delayed ACKs waits at most 40 ms, as FreeBSD does.
            ack_delay = (packets_per_ack > 1).then_some(Duration::from_millis(40));
            let timeout = rto.map(|text| quantity("rto", text, read::duration)).transpose()?;
            Model::Pftk { packets_per_ack, timeout }
        }
        "cubic" => {
            cc = cc.or_else(|| Some("cubic".to_owned()));
            Model::Cubic { w_max }
        }
        _ => {
            let message = format!(
                "{model:?} is not a formula: expected \"mathis\" or \"aimd\" or \"pftk\" or \"cubic\""
            );
            return Err(PyValueError::new_err(message));
        }
    };
    let mut answer = theory_report::evaluate(&path, model).map_err(refused)?;
    if let Some(profile) = run {
        let pattern = if random { Pattern::Random } else { Pattern::Periodic };
        let trial = Trial { profile, cc, pattern, ack_delay, seed };
        let expected = answer.estimate().map_or(0.0, |asked| asked.rate_bps);
        let measured = watch(py, 1, None, |watched| {
            theory_report::measure_until(&path, expected, &trial, watched.stop())
        })?
        .map_err(|mistakes| wrong_scenario(py, &mistakes))?;
        answer = answer.with(measured);
    }
    Ok((answer.to_json(), answer.to_text()))
}

fn quantity<T>(
    name: &str,
    text: &str,
    read: fn(&str) -> Result<T, scenario::units_text::QuantityError>,
) -> PyResult<T> {
    read(text).map_err(|misread| {
        let hint = misread.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        let (message, expected) = (misread.message, misread.expected);
        PyValueError::new_err(format!("{name}={text:?} {message}: expected {expected}{hint}"))
    })
}

fn refused(unfit: TheoryError) -> PyErr {
    PyValueError::new_err(unfit.to_string())
}
