//! QUIC transfers, from the log of their sender.

use fit::{
    Basis, Conversation, FitError, FittedTransfer, LossPattern, PathDoubt, QuicFit,
    RecordedTransfer, ReorderingFit, WordError,
};
use ingest::diagnosis::Validity;
use ingest::inputs::QuicConnection;
use quic::flow_control::Windows;
use quic::profile::QuicProfile;
use runner::workers::Workers;
use tcp::profile::TcpProfile;

use super::alternatives::{FittedPath, called};
use super::cures::cures;
use super::{BestSender, PossibleSender, WhatIf, WhatIfError, WhatIfRequest, split};

/// Senders tried if the log does not name its own.
const UNNAMED: [(&str, &str); 8] = [
    ("quic-rfc9002", "newreno"),
    ("quic-rfc9002", "cubic"),
    ("quinn-0.11", "cubic"),
    ("quiche-0.30", "cubic"),
    ("quic-go-0.65", "newreno"),
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
    QuicFit::of_stack(&connection.analysis, default_of(connection, named))
}

/// Flow control windows of the connection and of a stream of the named stack, or of the one of the log.
fn default_of(
    connection: &QuicConnection,
    named: Option<&str>,
) -> Option<(&'static str, [u64; 2])> {
    let logged = connection.sender.as_ref().map(|sender| sender.profile.as_str());
    let profile = named.map(|name| split(name).0).or(logged).and_then(QuicProfile::named)?;
    let Windows { connection, stream } = profile.windows;
    Some((profile.name, [connection, stream]))
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
/// Why nothing is predicted of a transfer that the log does not have to its end.
pub(crate) const UNFINISHED: &str =
    "the log ends in a silence with data outstanding: what was left to send is unknown";
/// Error of the recorded sender above which other explanations of the log are tried.
const MAX_OTHER_ERROR: f64 = 0.05;

/// Seeds of the reordering that are tried.
const SEEDS: u64 = 10;

/// A logged transfer, with the changes that are no keys of its scenario, and what the log leaves open about its path.
#[derive(Debug, Clone)]
pub(crate) struct LoggedTransfer {
    pub(crate) fit: QuicFit,
    /// Seed of the run with the recorded losses: which packets are reordered is chance.
    seed: u64,
}

impl LoggedTransfer {
    const fn of(fit: QuicFit) -> Self {
        Self { fit, seed: 1 }
    }
}

impl FittedTransfer for LoggedTransfer {
    fn recorded(&self) -> RecordedTransfer<'_> {
        self.fit.recorded()
    }

    fn windows(&self) -> &[(u64, u64)] {
        FittedTransfer::windows(&self.fit)
    }

    fn starts_with_data(&self) -> bool {
        self.fit.starts_with_data()
    }

    fn ahead(&self) -> u64 {
        self.fit.ahead()
    }

    fn is_random(&self) -> bool {
        self.fit.is_random()
    }

    fn has_full_queue(&self) -> bool {
        self.fit.has_full_queue()
    }

    fn with_word(
        &self,
        key: &str,
        value: &str,
    ) -> Result<Option<Box<dyn FittedTransfer>>, WordError> {
        let changed = self.fit.with_word(key, value)?;
        Ok(changed.map(|one| Box::new(Self { fit: one, ..*self }) as Box<dyn FittedTransfer>))
    }

    fn other_paths(&self) -> Vec<(PathDoubt, Box<dyn FittedTransfer>)> {
        let fit = &self.fit;
        let with = |fit: QuicFit| Box::new(Self { fit, ..*self }) as Box<dyn FittedTransfer>;
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
        if let Some(together) = fit.conversation.as_ref().and_then(Conversation::served_together) {
            let conversation = Some(together);
            others.push((PathDoubt::Service, with(QuicFit { conversation, ..fit.clone() })));
        }
        others
    }

    fn bases(&self) -> &[Basis] {
        self.fit.recorded().bases
    }

    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String {
        let seed = if losses == LossPattern::Same { self.seed } else { seed };
        self.fit.scenario(profile, cc, losses, seed)
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
        Self::of_quic_on(connection, question, &Workers::one())
    }

    /// Does the same as [`of_quic`](Self::of_quic) on the threads of `workers`, and ends with them.
    ///
    /// # Errors
    /// [`WhatIfError`].
    pub fn of_quic_on(
        connection: &QuicConnection,
        question: &WhatIfRequest,
        workers: &Workers<'_>,
    ) -> Result<Self, WhatIfError> {
        let named = question.sender.as_deref();
        let LoggedReproduction { fitted, mut answer, best } =
            reproduce(connection, named, workers)?;
        let asked = WhatIfRequest { sender: None, ..question.clone() };
        answer.alternatives = if asked == WhatIfRequest::default() {
            suggested(&fitted, &best, workers)?
        } else {
            let senders = &[];
            let path = FittedPath { fitted: &fitted, best: &best, senders, workers, kernels: None };
            path.requested(&asked)?
        };
        if fitted.fit.unfinished {
            for one in &mut answer.alternatives {
                one.prediction.validity = Validity::None;
                UNFINISHED.clone_into(&mut one.prediction.why);
            }
        }
        Ok(answer)
    }
}

/// A logged transfer that was simulated, with the sender that explains it best.
pub(crate) struct LoggedReproduction<'a> {
    pub(crate) fitted: LoggedTransfer,
    pub(crate) answer: WhatIf,
    pub(crate) best: BestSender<'a>,
}

/// Fits the path of a log, and simulates its sender, or the one `named`.
///
/// # Errors
/// [`WhatIfError`].
pub(crate) fn reproduce<'a>(
    connection: &'a QuicConnection,
    named: Option<&'a str>,
    workers: &Workers<'_>,
) -> Result<LoggedReproduction<'a>, WhatIfError> {
    let fitted = fit_of(connection, named).map_err(WhatIfError::Fit)?;
    let possible = possible(connection, named);
    let senders = possible.iter().map(|&(profile, cc)| PossibleSender {
        profile,
        cc: Some(cc),
        shown_by_windows: None,
    });
    let senders: Vec<_> = senders.collect();
    let mut fitted = LoggedTransfer::of(fitted);
    let (mut answer, mut best) = WhatIf::candidates(&fitted, &senders, workers, None)?;
    let explained = fitted.fit.clone();
    let others = || explained.others(&connection.analysis, default_of(connection, named));
    let mut others = if best.error > MAX_OTHER_ERROR { others() } else { Vec::new() };
    // Which packets are reordered is chance: seeds are as likely as each other.
    let is_random = matches!(explained.late, Some((ReorderingFit::Share(..), _)));
    let seeds = if is_random { 1..=SEEDS } else { 1..=1 };
    others.insert(0, explained.clone());
    for (fit, seed) in others
        .into_iter()
        .flat_map(|fit| seeds.clone().map(move |seed| (fit.clone(), seed)))
        .skip(1)
    {
        if best.error <= MAX_OTHER_ERROR {
            break;
        }
        let other = LoggedTransfer { fit, seed };
        let tried = WhatIf::candidates(&other, &senders, workers, None)?;
        if tried.1.error < best.error {
            ((answer, best), fitted) = (tried, other);
        }
    }
    Ok(LoggedReproduction { fitted, answer, best })
}

/// Simulates other congestion control, and each change that the recording suggests.
fn suggested(
    fitted: &LoggedTransfer,
    best: &BestSender<'_>,
    workers: &Workers<'_>,
) -> Result<Vec<super::Alternative>, WhatIfError> {
    let other = if best.cc == Some("newreno") { "cubic" } else { "newreno" };
    let path = FittedPath { fitted, best, senders: &[], workers, kernels: None };
    let cures = cures(&fitted.fit).into_iter().map(Some);
    let tried: Vec<_> = core::iter::once(None).chain(cures).collect();
    workers.map(&tried, |cure| {
        let Some(cure) = cure else {
            return path.alternative((best.profile, Some(other)), &[]);
        };
        let changed = cure.fit.clone().map(|fit| LoggedTransfer { fit, ..*fitted });
        let path = FittedPath { fitted: changed.as_ref().unwrap_or(fitted), ..path };
        let mut one = path.alternative((best.profile, best.cc), &cure.set)?;
        if let Some(label) = cure.label {
            one.what = format!("{} {label}", called((best.profile, best.cc)));
        }
        Ok(one)
    })
}
