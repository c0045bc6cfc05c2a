//! `ackclock theory`: throughput formulas, their assumptions, and a simulation for comparison.

mod bbr;

use std::process::ExitCode;

use runner::theory_report::{self, Model, Pattern, Trial};
use theory::aimd::Aimd;
use theory::sawtooth::ExtraRtts;
use theory::{Path, TheoryError};
use units::Duration;

use crate::cli::{AimdArgs, CubicArgs, MathisArgs, PathArgs, PftkArgs, TheoryCommand, TrialArgs};
use crate::failure::Failure;
use crate::output::print;

pub(super) fn run(command: TheoryCommand) -> Result<ExitCode, Failure> {
    match command {
        TheoryCommand::Mathis(args) => mathis(args),
        TheoryCommand::Aimd(args) => aimd(args),
        TheoryCommand::Pftk(args) => pftk(args),
        TheoryCommand::Cubic(args) => cubic(args),
        TheoryCommand::Bbr(args) => bbr::run(&args),
    }
}

fn mathis(args: MathisArgs) -> Result<ExitCode, Failure> {
    let path = path(&args.path)?;
    let extra = match (args.extra_rtts, args.ack_delay) {
        (Some(b), _) => Some(ExtraRtts::new(b).map_err(refused)?),
        (None, Some(delay)) => Some(ExtraRtts::every_other_packet(delay, &path)),
        (None, None) => None,
    };
    let model = Model::Mathis { extra };
    answer(&args.path, &path, model, args.trial, args.ack_delay)
}

fn aimd(args: AimdArgs) -> Result<ExitCode, Failure> {
    let measure = match args.alpha {
        Some(alpha) => Aimd::new(alpha, args.beta),
        None => Aimd::friendly(args.beta),
    };
    let model = Model::Aimd(measure.map_err(refused)?);
    let path = path(&args.path)?;
    answer(&args.path, &path, model, args.trial, None)
}

fn pftk(args: PftkArgs) -> Result<ExitCode, Failure> {
    let path = path(&args.path)?;
    let model = Model::Pftk { packets_per_ack: args.ack_every, timeout: args.rto };
    // A receiver with delayed ACKs waits at most 40 ms, as FreeBSD does.
    let delay = (args.ack_every > 1).then_some(Duration::from_millis(40));
    answer(&args.path, &path, model, args.trial, delay)
}

fn cubic(args: CubicArgs) -> Result<ExitCode, Failure> {
    let path = path(&args.path)?;
    let mut trial = args.trial;
    trial.cc = trial.cc.or_else(|| Some("cubic".to_owned()));
    answer(&args.path, &path, Model::Cubic { w_max: args.w_max }, trial, None)
}

/// Prints the results of the formulas, and of a simulation if requested.
fn answer(
    args: &PathArgs,
    path: &Path,
    model: Model,
    trial: TrialArgs,
    ack_delay: Option<Duration>,
) -> Result<ExitCode, Failure> {
    let mut answer = theory_report::evaluate(path, model).map_err(refused)?;
    if let Some(profile) = trial.run {
        let pattern = if trial.random { Pattern::Random } else { Pattern::Periodic };
        let trial = Trial { profile, cc: trial.cc, pattern, ack_delay, seed: trial.seed };
        let expected = answer.estimate().map_or(0.0, |asked| asked.rate_bps);
        let measured = theory_report::measure(path, expected, &trial).map_err(Failure::Scenario)?;
        answer = answer.with(measured);
    }
    print(&if args.json { answer.to_json() } else { answer.to_text() })?;
    Ok(ExitCode::SUCCESS)
}

fn path(args: &PathArgs) -> Result<Path, Failure> {
    let mut path = Path::new(args.mss, args.rtt, args.loss).map_err(refused)?;
    if let Some(rate) = args.rate {
        path = path.with_rate(rate);
    }
    match args.window {
        Some(window) => path.with_window(window).map_err(refused),
        None => Ok(path),
    }
}

fn refused(unfit: TheoryError) -> Failure {
    let failure = Failure::new(unfit.to_string());
    match unfit {
        TheoryError::NoLoss => failure.hint("give a loss rate above 0, such as --loss 0.001%"),
        TheoryError::NoWindow => failure.hint("--window and --w-max must be at least one segment"),
        _ => failure,
    }
}
