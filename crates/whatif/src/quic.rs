//! QUIC transfers, from the log of their sender.

use fit::{
    Basis, FitError, FittedTransfer, LossPattern, PathDoubt, QuicFit, RecordedTransfer, WordError,
};
use ingest::inputs::QuicConnection;
use quic::flow_control::Windows;
use quic::profile::QuicProfile;
use runner::stop::{NEVER, StopFlag};
use tcp::profile::TcpProfile;

use super::alternatives::{FittedPath, called};
use super::cures::cures;
use super::{BestSender, PossibleSender, WhatIf, WhatIfError, WhatIfRequest, split};

/// Senders tried if the log does not name its own.
const UNNAMED: [(&str, &str); 8] = [
    ("quic-rfc9002", "newreno"),
    ("quic-rfc9002", "cubic"),
    ("quinn-0.11", "cubic"),
    ("quiche-0.29", "cubic"),
    ("quic-go-0.61", "newreno"),
    ("neqo-0.30", "cubic"),
    ("s2n-quic-1.88", "cubic"),
    ("msquic-2.6", "cubic"),
];

/// The scenario fitted to a log, with the sender that it names, as a file.
///
/// # Errors
/// [`FitError`] if the log lacks information.
pub fn quic_scenario_of(connection: &QuicConnection) -> Result<String, FitError> {
    let fitted = fit_of(connection, None)?;
    let (profile, cc) = possible(connection, None)[0];
    Ok(fitted.scenario(profile, Some(cc), LossPattern::Same, 1))
}

/// The fit, with the flow control windows of the named stack if the log has none.
fn fit_of(connection: &QuicConnection, named: Option<&str>) -> Result<QuicFit, FitError> {
    let logged = connection.sender.as_ref().map(|sender| sender.profile.as_str());
    if let Some(name) = logged.filter(|name| TcpProfile::named(name).is_some()) {
        return QuicFit::of_tcp(&connection.analysis, name);
    }
    let profile = named.map(|name| split(name).0).or(logged).and_then(QuicProfile::named);
    let default = profile.map(|profile| {
        let Windows { connection, stream } = profile.windows;
        (profile.name, [connection, stream])
    });
    QuicFit::of_stack(&connection.analysis, default)
}

/// Senders that the log may be of: the one named, with its default congestion control first. A
/// profile and a controller that no scenario has are those of a sender that is not named.
fn possible<'a>(connection: &'a QuicConnection, named: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let logged = connection.sender.as_ref();
    let logged = logged.map(|sender| (sender.profile.as_str(), sender.cc.as_deref()));
    let logged = logged.filter(|(profile, _)| is_known(profile));
    let Some((profile, cc)) = named.map(split).or(logged) else { return UNNAMED.to_vec() };
    let tcp = TcpProfile::named(profile);
    let is_offered = |cc: &&str| tcp.as_ref().is_none_or(|tcp| tcp.algorithm(cc).is_ok());
    let default = match &tcp {
        Some(_) => "cubic",
        None => QuicProfile::named(profile).map_or("newreno", |profile| profile.default_cc),
    };
    match cc.filter(is_offered) {
        Some(cc) => vec![(profile, cc)],
        None => {
            let other = if default == "newreno" { "cubic" } else { "newreno" };
            vec![(profile, default), (profile, other)]
        }
    }
}

fn is_known(profile: &str) -> bool {
    TcpProfile::named(profile).is_some() || QuicProfile::named(profile).is_some()
}

/// A queue of a path that holds little, in bytes.
const LEAST_QUEUE: u64 = 30_000;
/// Error of the recorded sender above which other explanations of the log are tried.
const MAX_OTHER_ERROR: f64 = 0.05;

/// A logged transfer, with the changes that are no keys of its scenario, and what the log leaves open about its path.
#[derive(Debug, Clone)]
struct LoggedTransfer(QuicFit);

impl FittedTransfer for LoggedTransfer {
    fn recorded(&self) -> RecordedTransfer<'_> {
        self.0.recorded()
    }

    fn windows(&self) -> &[(u64, u64)] {
        FittedTransfer::windows(&self.0)
    }

    fn starts_with_data(&self) -> bool {
        self.0.starts_with_data()
    }

    fn ahead(&self) -> u64 {
        self.0.ahead()
    }

    fn is_random(&self) -> bool {
        self.0.is_random()
    }

    fn has_full_queue(&self) -> bool {
        self.0.has_full_queue()
    }

    fn with_word(
        &self,
        key: &str,
        value: &str,
    ) -> Result<Option<Box<dyn FittedTransfer>>, WordError> {
        let changed = self.0.with_word(key, value)?;
        Ok(changed.map(|one| Box::new(Self(one)) as Box<dyn FittedTransfer>))
    }

    fn other_paths(&self) -> Vec<(PathDoubt, Box<dyn FittedTransfer>)> {
        let fit = &self.0;
        let with = |changed: QuicFit| Box::new(Self(changed)) as Box<dyn FittedTransfer>;
        let mut others = Vec::new();
        if fit.rate.is_none() {
            let rate = Some(fit.rate_at_least.max(1));
            others.push((PathDoubt::Rate, with(QuicFit { rate, ..fit.clone() })));
        }
        if let (Some(rate), None) = (fit.rate, fit.buffer) {
            let product = (rate as f64 / 8.0 * fit.rtt as f64 / 1e9) as u64;
            for products in [1, 2] {
                let buffer = Some((products * product).max(LEAST_QUEUE));
                others.push((PathDoubt::Queue, with(QuicFit { buffer, ..fit.clone() })));
            }
        }
        others
    }

    fn bases(&self) -> &[Basis] {
        self.0.recorded().bases
    }

    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String {
        self.0.scenario(profile, cc, losses, seed)
    }
}

impl WhatIf {
    /// Simulates what `question` requests for a QUIC connection whose data were kept
    /// ([`ReadMode::keeps_quic`](ingest::inputs::ReadMode::keeps_quic)). Its `sender` is the recorded one, if
    /// the log does not name it. Without a request, other congestion control is tried, and what the
    /// recording shows as its limits is changed.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn of_quic(
        connection: &QuicConnection,
        question: &WhatIfRequest,
    ) -> Result<Self, WhatIfError> {
        Self::of_quic_until(connection, question, &NEVER)
    }

    /// Does the same as [`of_quic`](Self::of_quic); ends its runs once `stop` is set.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn of_quic_until(
        connection: &QuicConnection,
        question: &WhatIfRequest,
        stop: StopFlag<'_>,
    ) -> Result<Self, WhatIfError> {
        let fitted = fit_of(connection, question.sender.as_deref()).map_err(WhatIfError::Fit)?;
        let possible = possible(connection, question.sender.as_deref());
        let senders = || {
            let senders = possible.iter().map(|&(profile, cc)| PossibleSender {
                profile,
                cc: Some(cc),
                shown_by_windows: None,
            });
            senders.collect()
        };
        let mut fitted = LoggedTransfer(fitted);
        let (mut answer, mut best) = Self::candidates(&fitted, senders(), stop, None)?;
        if best.error > MAX_OTHER_ERROR
            && let Some(simple) = fitted.0.without_conversation().map(LoggedTransfer)
        {
            let other = Self::candidates(&simple, senders(), stop, None)?;
            if other.1.error < best.error {
                ((answer, best), fitted) = (other, simple);
            }
        }
        let asked = WhatIfRequest { sender: None, ..question.clone() };
        answer.alternatives = if asked == WhatIfRequest::default() {
            suggested(&fitted.0, &best, stop)?
        } else {
            let senders = &[];
            let path = FittedPath { fitted: &fitted, best: &best, senders, stop, kernels: None };
            path.requested(&asked)?
        };
        Ok(answer)
    }
}

/// Simulates other congestion control, and each change that the recording suggests.
fn suggested(
    fitted: &QuicFit,
    best: &BestSender<'_>,
    stop: StopFlag<'_>,
) -> Result<Vec<super::Alternative>, WhatIfError> {
    let other = if best.cc == Some("newreno") { "cubic" } else { "newreno" };
    let path = FittedPath { fitted, best, senders: &[], stop, kernels: None };
    let mut alternatives = vec![path.alternative((best.profile, Some(other)), &[])?];
    for cure in cures(fitted) {
        let path = FittedPath { fitted: cure.fit.as_ref().unwrap_or(fitted), ..path };
        let mut one = path.alternative((best.profile, best.cc), &cure.set)?;
        if let Some(label) = cure.label {
            one.what = format!("{} {label}", called((best.profile, best.cc)));
        }
        alternatives.push(one);
    }
    Ok(alternatives)
}
