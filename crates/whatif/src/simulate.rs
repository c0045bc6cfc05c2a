//! Runs of fitted scenarios.

use std::path::Path;

use fit::FittedTransfer;
use runner::stop::{self, StopFlag};
use scenario::{Files, Overrides, load};
use sim::scenario::{TapPoint, TapSpec};
use tcp::profile::Family;

use super::curve::DeliveryCurve;
use super::{KernelRunner, SimulatedTransfer, TransferResult, WhatIfError};

/// Simulates a fitted scenario; times are those at the capture point.
pub(crate) fn simulate(
    text: &str,
    set: &[String],
    fitted: &dyn FittedTransfer,
    stop: StopFlag<'_>,
) -> Result<SimulatedTransfer, WhatIfError> {
    let overrides = Overrides { set: set.to_vec(), files: libraries(), ..Overrides::default() };
    let loaded = load(text, "the fitted scenario", &overrides).map_err(WhatIfError::Scenario)?;
    let mut seen = DeliveryCurve::new(fitted);
    stop::run_shared(&loaded.scenario, &mut seen, stop).map_err(WhatIfError::Run)?;
    Ok(seen.result(fitted))
}

/// Runs a fitted scenario with real kernels as its Linux hosts; `None` without `kernels`, or if its sender
/// is not of Linux.
pub(crate) fn with_kernels(
    text: &str,
    set: &[String],
    fitted: &dyn FittedTransfer,
    kernels: Option<&KernelRunner<'_>>,
) -> Result<Option<TransferResult>, WhatIfError> {
    let Some(run) = kernels else { return Ok(None) };
    let overrides = Overrides { set: set.to_vec(), files: libraries(), ..Overrides::default() };
    let loaded = load(text, "the fitted scenario", &overrides).map_err(WhatIfError::Scenario)?;
    let linux = loaded.scenario.hosts.first().and_then(|host| host.stack.tcp());
    if linux.is_none_or(|tcp| tcp.profile.family != Family::Linux) {
        return Ok(None);
    }
    let mut scenario = loaded.scenario;
    scenario.taps = vec![TapSpec { host: 0, place: TapPoint::Stack }];
    let mut seen = DeliveryCurve::new(fitted);
    run(&scenario, &mut seen).map_err(WhatIfError::Kernel)?;
    Ok(Some(seen.result(fitted).0))
}

/// Controllers in libraries are looked for where the program was started; a fitted scenario names no other files.
fn libraries() -> Files {
    Files::default()
        .with_controllers(|name| foreign_cc::named::controller_with_bytes(name, Path::new("")))
}

pub(crate) fn course(bytes: u64, ns: u64) -> TransferResult {
    let time_s = ns.max(1) as f64 / 1e9;
    TransferResult { bytes, time_s, goodput_bps: bytes as f64 * 8.0 / time_s }
}
