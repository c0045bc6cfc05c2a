//! Congestion controllers written in Python.

use std::sync::{Mutex, PoisonError};

use cc::CongestionSignal;
use cc::ExternalAlgorithm;
use cc::external::{
    CcDecision, CcReport, ControllerError, ControllerFactory, LossReport, ReportTrigger,
    UserController,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use units::{Bytes, Duration, Instant, Rate};

/// The events since the last report. Times are in seconds, windows in bytes.
#[pyclass(frozen, get_all, name = "Report", module = "ackclock")]
pub(crate) struct PyReport {
    /// Virtual time.
    now_s: f64,
    /// Time since the last report.
    interval_s: f64,
    /// Bytes acknowledged in the interval.
    acked_bytes: u64,
    /// Fast recoveries and ECN reductions that began in the interval.
    losses: u32,
    /// Retransmission timeouts in the interval.
    timeouts: u32,
    /// Smallest round-trip sample in the interval; None without a sample.
    rtt_min_s: Option<f64>,
    /// Latest round-trip sample in the interval.
    rtt_s: Option<f64>,
    /// Smoothed round-trip time of the stack.
    srtt_s: f64,
    /// Current congestion window.
    cwnd_bytes: u64,
    /// Slow-start threshold; None while unset.
    ssthresh_bytes: Option<u64>,
    /// Payload of a full segment.
    mss_bytes: u32,
    /// In fast recovery?
    in_recovery: bool,
    /// Bytes sent and not yet acknowledged.
    flight_bytes: u64,
    /// Bytes acknowledged since the connection was established.
    delivered_bytes: u64,
    /// Packets delivered in the interval, acknowledged or SACKed.
    packets: u32,
    /// Reductions by echoes of CE marks in the interval; they count as losses too.
    ecn_marks: u32,
    /// Did the window limit the last flight, not the application or the receiver?
    window_limited: bool,
    /// Receive window of the peer.
    peer_window_bytes: u64,
    /// Round trips that ended since the connection was established.
    rounds: u32,
}

#[pymethods]
impl PyReport {
    /// Congestion window in full segments.
    #[getter]
    fn cwnd_mss(&self) -> f64 {
        self.cwnd_bytes as f64 / f64::from(self.mss_bytes)
    }

    /// Bytes acknowledged per second, in bit/s.
    #[getter]
    fn delivery_bps(&self) -> f64 {
        if self.interval_s > 0.0 { self.acked_bytes as f64 * 8.0 / self.interval_s } else { 0.0 }
    }

    fn __repr__(&self) -> String {
        format!(
            "<ackclock.Report at {:.6} s: {} B acknowledged, cwnd {} B, {} losses>",
            self.now_s, self.acked_bytes, self.cwnd_bytes, self.losses
        )
    }
}

/// A congestion event detected by the stack.
#[pyclass(frozen, get_all, name = "Loss", module = "ackclock")]
pub(crate) struct PyLoss {
    /// Virtual time, in seconds.
    now_s: f64,
    /// "loss", "ecn" or "timeout".
    kind: &'static str,
    /// Congestion window before it.
    cwnd_bytes: u64,
    /// The slow-start threshold of Reno after it; None if not applicable.
    ssthresh_bytes: Option<u64>,
    /// Bytes in flight as estimated by the stack (pipe).
    pipe_bytes: u64,
    /// Payload of a full segment.
    mss_bytes: u32,
    /// Packets marked lost since the connection was established, where the stack counts them (Linux).
    lost_packets: u64,
}

#[pymethods]
impl PyLoss {
    fn __repr__(&self) -> String {
        let Self { now_s, kind, cwnd_bytes, .. } = self;
        format!("<ackclock.Loss at {now_s:.6} s: {kind}, cwnd {cwnd_bytes} B>")
    }
}

/// Controllers by the names that scenarios use.
pub(crate) fn outside(controllers: &Bound<'_, PyDict>) -> PyResult<Vec<ExternalAlgorithm>> {
    let known = controllers.iter().map(|(name, class)| match name.extract::<String>() {
        Ok(name) => one(&name, &class),
        Err(_) => {
            let message = format!("controllers: names are str, found {}", name.repr()?);
            Err(PyTypeError::new_err(message))
        }
    });
    known.collect()
}

/// All factories ever created, so that repeated use of a class does not leak memory.
static MADE: Mutex<Vec<RegisteredFactory>> = Mutex::new(Vec::new());

/// A factory and its class. It keeps the class alive, so no other class gets its address.
struct RegisteredFactory {
    class: usize,
    name: &'static str,
    every: ReportTrigger,
    base_grows: bool,
    outside: ExternalAlgorithm,
}

fn one(name: &str, class: &Bound<'_, PyAny>) -> PyResult<ExternalAlgorithm> {
    if cc::registry::NAMES.contains(&name) {
        let message = format!("controllers: {name:?} is the name of a built-in controller");
        return Err(PyValueError::new_err(message));
    }
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        let message =
            format!("controllers: {name:?} is not a valid name: letters, digits, - _ . only");
        return Err(PyValueError::new_err(message));
    }
    if !class.is_callable() {
        let kind = class.get_type().name()?;
        let message = format!("controllers[{name:?}]: expected a class, found {kind}");
        return Err(PyTypeError::new_err(message));
    }
    let attribute = |key: &str| class.getattr_opt(key);
    let every = match attribute("every")? {
        None => ReportTrigger::Round,
        Some(text) => every(name, &text)?,
    };
    let base_grows = match attribute("reno_grows")? {
        None => false,
        Some(value) => value.extract().map_err(|_| {
            PyTypeError::new_err(format!("controllers[{name:?}].reno_grows: expected a bool"))
        })?,
    };
    if class.cast::<PyType>().is_ok() {
        let names: Vec<String> = class.dir()?.extract()?;
        runner::user_controllers::check_hooks(names.iter().map(String::as_str)).map_err(
            |wrong| PyTypeError::new_err(format!("controllers[{name:?}]: the class {wrong}")),
        )?;
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |known: &&RegisteredFactory| {
        let is_named = known.name == name && known.class == class.as_ptr() as usize;
        is_named && known.every == every && known.base_grows == base_grows
    };
    if let Some(known) = made.iter().find(same) {
        return Ok(known.outside);
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let maker = PyControllerFactory { name, every, base_grows, class: class.clone().unbind() };
    let outside = ExternalAlgorithm::new(maker);
    made.push(RegisteredFactory {
        class: class.as_ptr() as usize,
        name,
        every,
        base_grows,
        outside,
    });
    Ok(outside)
}

fn every(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ReportTrigger> {
    let wrong = |found: String| {
        PyValueError::new_err(format!(
            "controllers[{name:?}].every: expected \"rtt\", \"ack\" or a duration such as \
             \"10ms\", found {found}"
        ))
    };
    let Ok(text) = value.extract::<String>() else { return Err(wrong(value.repr()?.to_string())) };
    match text.as_str() {
        "rtt" => Ok(ReportTrigger::Round),
        "ack" => Ok(ReportTrigger::Ack),
        _ => match scenario::units_text::duration(&text) {
            Ok(span) if !span.is_zero() => Ok(ReportTrigger::Interval(span)),
            _ => Err(wrong(format!("{text:?}"))),
        },
    }
}

#[derive(Debug)]
struct PyControllerFactory {
    name: &'static str,
    every: ReportTrigger,
    base_grows: bool,
    class: Py<PyAny>,
}

impl ControllerFactory for PyControllerFactory {
    fn name(&self) -> &'static str {
        self.name
    }

    fn every(&self) -> ReportTrigger {
        self.every
    }

    fn base_grows(&self) -> bool {
        self.base_grows
    }

    fn make(&self) -> Box<dyn UserController> {
        let object = Python::attach(|py| {
            self.class.call0(py).map_err(|error| gone(py, self.name, "__init__", &error))
        });
        Box::new(PyController { name: self.name, mss: 1, object })
    }
}

#[derive(Debug)]
struct PyController {
    name: &'static str,
    mss: u32,
    /// The object, or the error of its construction, which the next hook returns.
    object: Result<Py<PyAny>, ControllerError>,
}

impl PyController {
    /// Calls `hook` if the object has it.
    fn ask<'py, A>(
        &self,
        py: Python<'py>,
        hook: &'static str,
        argument: A,
    ) -> Result<CcDecision, ControllerError>
    where
        A: IntoPyObject<'py>,
        PyErr: From<A::Error>,
    {
        let object = self.object.as_ref().map_err(ControllerError::clone)?.bind(py);
        let call = || -> PyResult<CcDecision> {
            let Some(method) = object.getattr_opt(hook)? else { return Ok(CcDecision::default()) };
            decision(&method.call1((argument,))?, self.mss)
        };
        call().map_err(|error| gone(py, self.name, hook, &error))
    }
}

impl UserController for PyController {
    fn on_start(
        &mut self,
        now: Instant,
        mss: u32,
        window: Bytes,
    ) -> Result<CcDecision, ControllerError> {
        self.mss = mss;
        let report = PyReport {
            now_s: now.as_secs_f64(),
            interval_s: 0.0,
            acked_bytes: 0,
            losses: 0,
            timeouts: 0,
            rtt_min_s: None,
            rtt_s: None,
            srtt_s: 0.0,
            cwnd_bytes: window.get(),
            ssthresh_bytes: None,
            mss_bytes: mss,
            in_recovery: false,
            flight_bytes: 0,
            delivered_bytes: 0,
            packets: 0,
            ecn_marks: 0,
            window_limited: false,
            peer_window_bytes: 0,
            rounds: 0,
        };
        Python::attach(|py| self.ask(py, "on_start", report))
    }

    fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError> {
        let report = PyReport {
            now_s: report.now.as_secs_f64(),
            interval_s: report.interval.as_secs_f64(),
            acked_bytes: report.acked,
            losses: report.losses,
            timeouts: report.timeouts,
            rtt_min_s: report.rtt_min.map(Duration::as_secs_f64),
            rtt_s: report.rtt_last.map(Duration::as_secs_f64),
            srtt_s: f64::from(report.srtt_micros) / 1e6,
            cwnd_bytes: report.window.get(),
            ssthresh_bytes: report.ssthresh.map(Bytes::get),
            mss_bytes: report.mss,
            in_recovery: report.in_recovery,
            flight_bytes: report.flight,
            delivered_bytes: report.delivered,
            packets: report.packets,
            ecn_marks: report.ecn_marks,
            window_limited: report.window_limited,
            peer_window_bytes: report.peer_window,
            rounds: report.rounds,
        };
        Python::attach(|py| self.ask(py, "on_report", report))
    }

    fn on_loss(&mut self, loss: &LossReport) -> Result<CcDecision, ControllerError> {
        let loss = PyLoss {
            now_s: loss.now.as_secs_f64(),
            kind: match loss.signal {
                CongestionSignal::Ecn => "ecn",
                CongestionSignal::Timeout { .. } => "timeout",
                _ => "loss",
            },
            cwnd_bytes: loss.window.get(),
            ssthresh_bytes: loss.ssthresh.map(Bytes::get),
            pipe_bytes: loss.pipe,
            mss_bytes: loss.mss,
            lost_packets: loss.lost_packets,
        };
        Python::attach(|py| self.ask(py, "on_loss", loss))
    }

    fn fork(&self) -> Box<dyn UserController> {
        let object = self.object.as_ref().map_err(ControllerError::clone).and_then(|object| {
            Python::attach(|py| {
                let copied =
                    py.import("copy").and_then(|copy| copy.call_method1("deepcopy", (object,)));
                let copied = copied.map(Bound::unbind);
                copied.map_err(|error| gone(py, self.name, "__deepcopy__", &error))
            })
        });
        Box::new(Self { object, ..*self })
    }
}

/// Parses the return value of a hook: None, a window in bytes, or a dictionary.
fn decision(value: &Bound<'_, PyAny>, mss: u32) -> PyResult<CcDecision> {
    if value.is_none() {
        return Ok(CcDecision::default());
    }
    let Ok(table) = value.cast::<PyDict>() else {
        return Ok(CcDecision {
            window: Some(window("returned", value, mss)?),
            ..CcDecision::default()
        });
    };
    let mut decision = CcDecision::default();
    for (key, value) in table.iter() {
        let key: String = key.extract()?;
        match key.as_str() {
            _ if value.is_none() => {}
            "cwnd_bytes" => decision.window = Some(window(&key, &value, mss)?),
            "ssthresh_bytes" => decision.ssthresh = Some(window(&key, &value, mss)?),
            "pacing_bps" => {
                let rate = number(&key, &value)?;
                let bits = (1.0..1e14).contains(&rate).then_some(rate as u64);
                let rate = bits.and_then(Rate::from_bits_per_second);
                decision.pacing =
                    Some(rate.ok_or_else(|| nonsense(&key, &value, "a rate in bit/s"))?);
            }
            _ => {
                let expected = "\"cwnd_bytes\", \"ssthresh_bytes\" or \"pacing_bps\"";
                return Err(PyValueError::new_err(format!(
                    "returned {key:?}, expected {expected}"
                )));
            }
        }
    }
    Ok(decision)
}

fn window(key: &str, value: &Bound<'_, PyAny>, mss: u32) -> PyResult<Bytes> {
    let bytes = number(key, value)?;
    // The largest TCP window (RFC 7323).
    let most = f64::from(1_u32 << 30);
    if (f64::from(mss)..=most).contains(&bytes) {
        return Ok(Bytes(bytes as u64));
    }
    Err(nonsense(key, value, &format!("{mss} (a segment) to {most} bytes")))
}

fn number(key: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| nonsense(key, value, "a number"))
}

fn nonsense(key: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let found = value.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
    PyValueError::new_err(format!("{key}: expected {expected}, found {found}"))
}

/// The error of a hook, with file and line.
fn gone(py: Python<'_>, name: &str, hook: &str, error: &PyErr) -> ControllerError {
    let position = position(py, error).unwrap_or_default();
    let kind =
        error.get_type(py).name().map_or_else(|_| "error".to_owned(), |kind| kind.to_string());
    let what = error.value(py);
    ControllerError(format!("controller {name:?}, {hook}{position}: {kind}: {what}"))
}

/// File and line of the innermost frame.
fn position(py: Python<'_>, error: &PyErr) -> Option<String> {
    let mut frame = error.traceback(py)?.into_any();
    while let Some(next) = frame.getattr("tb_next").ok().filter(|next| !next.is_none()) {
        frame = next;
    }
    let line: u32 = frame.getattr("tb_lineno").ok()?.extract().ok()?;
    let code = frame.getattr("tb_frame").ok()?.getattr("f_code").ok()?;
    let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
    Some(format!(" ({file}, line {line})"))
}
