//! Congestion controllers of the user in Python, run by his own interpreter.
//!
//! A class in a file becomes an [`ExternalAlgorithm`]. Each thread has an interpreter of its own, which
//! answers one hook a line ([`host.py`](user_controllers/host.py)). The file is executed anew for each
//! world, with the same seed of `random`, so that results do not depend on the worlds before.

mod decision;
mod process;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cc::CongestionSignal;
use cc::ExternalAlgorithm;
use cc::external::{
    CcDecision, CcReport, ControllerError, ControllerFactory, LossReport, ReportTrigger,
    UserController,
};
use scenario::nearest;
use serde_json::{Value, json};
use units::{Bytes, Duration, Instant};

use process::PythonProcess;

/// The hooks of a controller.
const HOOKS: [&str; 3] = ["on_start", "on_report", "on_loss"];

/// Fields of a report, in the order in which they are sent.
const REPORT_FIELDS: &str = "now_s,interval_s,acked_bytes,losses,timeouts,rtt_min_s,rtt_s,srtt_s,\
     cwnd_bytes,ssthresh_bytes,mss_bytes,in_recovery,flight_bytes,delivered_bytes,packets,ecn_marks,\
     window_limited,peer_window_bytes,rounds";
/// Fields of a loss.
const LOSS_FIELDS: &str = "now_s,kind,cwnd_bytes,ssthresh_bytes,pipe_bytes,mss_bytes,lost_packets";

/// The file and the class of `FILE.py:CLASS`; `None` if the text is of another form.
pub fn python_class(text: &str) -> Option<(PathBuf, &str)> {
    let (file, class) = text.rsplit_once(':')?;
    let is_python = Path::new(file).extension().is_some_and(|of| of == "py");
    (is_python && !class.is_empty()).then(|| (PathBuf::from(file), class))
}

/// Checks the public names of a controller's class.
///
/// # Errors
/// It lacks `on_report`, or has a name that looks like a hook and is none, which would never be called.
pub fn check_hooks<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut reports = false;
    for name in names.filter(|name| !name.starts_with('_')) {
        reports |= name == "on_report";
        if HOOKS.contains(&name) {
            continue;
        }
        let near = nearest(name, HOOKS);
        if near.is_some() || name.starts_with("on_") {
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the hooks are {}", HOOKS.join(", ")),
            };
            return Err(format!("has `{name}`, which is no hook; {hint}"));
        }
    }
    if reports { Ok(()) } else { Err("has no method `on_report`".to_owned()) }
}

/// The controller of a class in a file; scenarios call it `name`.
///
/// # Errors
/// There is no Python, the file cannot be read or executed, it has no such class, or the class is not
/// a controller.
pub fn python_controller(
    name: &str,
    file: &Path,
    class: &str,
) -> Result<ExternalAlgorithm, ControllerError> {
    let wrong = |what: String| ControllerError(format!("{}: {what}", file.display()));
    let path = file.canonicalize().map_err(|error| wrong(format!("cannot read it: {error}")))?;
    let command = Arc::new(process::PythonCommand::new(path, class));
    let (process, answer) = PythonProcess::start(&command).map_err(|error| wrong(error.0))?;
    drop(process);
    let names = answer.get("names").and_then(Value::as_array);
    let names: Vec<&str> =
        names.map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
    check_hooks(names.into_iter()).map_err(|what| wrong(format!("class {class} {what}")))?;
    let every = match answer.get("every").and_then(Value::as_str) {
        Some("rtt") => ReportTrigger::Round,
        Some("ack") => ReportTrigger::Ack,
        Some(text) => match scenario::units_text::duration(text) {
            Ok(span) if !span.is_zero() => ReportTrigger::Interval(span),
            _ => {
                let expected = "expected \"rtt\", \"ack\" or a duration such as \"10ms\"";
                return Err(wrong(format!("{class}.every: {expected}, found {text:?}")));
            }
        },
        None => return Err(wrong(format!("{class}.every: expected a text"))),
    };
    let reno_grows = answer.get("reno_grows").and_then(Value::as_bool).unwrap_or(false);
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    Ok(ExternalAlgorithm::new(PythonFactory { name, command, every, reno_grows }))
}

#[derive(Debug)]
struct PythonFactory {
    name: &'static str,
    command: Arc<process::PythonCommand>,
    every: ReportTrigger,
    reno_grows: bool,
}

impl ControllerFactory for PythonFactory {
    fn name(&self) -> &'static str {
        self.name
    }

    fn every(&self) -> ReportTrigger {
        self.every
    }

    fn base_grows(&self) -> bool {
        self.reno_grows
    }

    fn make(&self) -> Box<dyn UserController> {
        let number = next_number();
        let process = process::of_thread(&self.command).and_then(|process| {
            call(&process, self.name, "make", number, &Value::Null)?;
            Ok(process)
        });
        Box::new(PythonController { name: self.name, number, mss: 1, process })
    }
}

/// The number of a new controller, unique in the program; results do not depend on it.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Sends a request and returns the answer.
fn call(
    process: &Mutex<PythonProcess>,
    name: &str,
    verb: &str,
    number: u64,
    argument: &Value,
) -> Result<Value, ControllerError> {
    let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = process.ask(&json!([verb, number, argument]))?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(ControllerError(format!("controller {name:?}, {verb}{error}"))),
        None => Ok(answer),
    }
}

#[derive(Debug)]
struct PythonController {
    name: &'static str,
    number: u64,
    mss: u32,
    /// The interpreter, or the error that the next hook returns.
    process: Result<Arc<Mutex<PythonProcess>>, ControllerError>,
}

impl PythonController {
    fn hook(&self, verb: &str, argument: &Value) -> Result<CcDecision, ControllerError> {
        let process = self.process.as_ref().map_err(ControllerError::clone)?;
        let answer = call(process, self.name, verb, self.number, argument)?;
        decision::read(&answer, self.mss).map_err(|wrong| {
            ControllerError(format!("controller {:?}, {verb}: {wrong}", self.name))
        })
    }
}

impl UserController for PythonController {
    fn on_start(
        &mut self,
        now: Instant,
        mss: u32,
        window: Bytes,
    ) -> Result<CcDecision, ControllerError> {
        self.mss = mss;
        let none = Value::Null;
        self.hook(
            "on_start",
            &json!([
                now.as_secs_f64(),
                0.0,
                0,
                0,
                0,
                none,
                none,
                0.0,
                window.get(),
                none,
                mss,
                false,
                0,
                0,
                0,
                0,
                false,
                0,
                0
            ]),
        )
    }

    fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError> {
        self.hook(
            "on_report",
            &json!([
                report.now.as_secs_f64(),
                report.interval.as_secs_f64(),
                report.acked,
                report.losses,
                report.timeouts,
                report.rtt_min.map(Duration::as_secs_f64),
                report.rtt_last.map(Duration::as_secs_f64),
                f64::from(report.srtt_micros) / 1e6,
                report.window.get(),
                report.ssthresh.map(Bytes::get),
                report.mss,
                report.in_recovery,
                report.flight,
                report.delivered,
                report.packets,
                report.ecn_marks,
                report.window_limited,
                report.peer_window,
                report.rounds,
            ]),
        )
    }

    fn on_loss(&mut self, loss: &LossReport) -> Result<CcDecision, ControllerError> {
        let kind = match loss.signal {
            CongestionSignal::Ecn => "ecn",
            CongestionSignal::Timeout { .. } => "timeout",
            _ => "loss",
        };
        self.hook(
            "on_loss",
            &json!([
                loss.now.as_secs_f64(),
                kind,
                loss.window.get(),
                loss.ssthresh.map(Bytes::get),
                loss.pipe,
                loss.mss,
                loss.lost_packets,
            ]),
        )
    }

    fn fork(&self) -> Box<dyn UserController> {
        let number = next_number();
        let process = self.process.as_ref().map_err(ControllerError::clone).and_then(|process| {
            call(process, self.name, "fork", self.number, &json!(number))?;
            Ok(Arc::clone(process))
        });
        Box::new(Self { number, process, ..*self })
    }
}

impl Drop for PythonController {
    fn drop(&mut self) {
        if let Ok(process) = &self.process {
            let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
            process.send(&json!(["drop", self.number, Value::Null]));
        }
    }
}

#[cfg(test)]
mod tests;
