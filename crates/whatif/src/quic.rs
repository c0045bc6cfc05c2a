//! QUIC transfers, from the log of their sender.

use fit::{FitError, LossPattern, QuicFit};
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
        let senders = possible.into_iter().map(|(profile, cc)| PossibleSender {
            profile,
            cc: Some(cc),
            shown_by_windows: None,
        });
        let (mut answer, best) = Self::candidates(&fitted, senders.collect(), stop, None)?;
        let asked = WhatIfRequest { sender: None, ..question.clone() };
        answer.alternatives = if asked == WhatIfRequest::default() {
            suggested(&fitted, &best, stop)?
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
