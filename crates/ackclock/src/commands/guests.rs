//! Runs of scenarios in which some hosts are real kernels.

use std::path::{Path, PathBuf};

use runner::sharing::{self, Sharing};
use scenario::Loaded;
use sim::scenario::Scenario;
use sim::{Observer, RunOutcome};

use crate::failure::Failure;

/// The kernels of a scenario, found in the cache.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    #[cfg(target_os = "linux")]
    guests: Vec<guest::GuestHost>,
    #[cfg(target_os = "linux")]
    programs: Vec<guest::GuestProgram>,
}

impl Kernels {
    /// Finds the kernels that a scenario names. A path names foreign code and needs `allow_exec`.
    #[cfg(target_os = "linux")]
    pub(super) fn of(loaded: &Loaded, file: &Path, allow_exec: bool) -> Result<Self, Failure> {
        let mut found = Self::with(&loaded.scenario, &loaded.kernels, file, allow_exec)?;
        for one in &loaded.programs {
            let program = foreign(&loaded.scenario, one.host, &one.program, file, allow_exec)?;
            found.programs.push(guest::GuestProgram { host: one.host, program });
        }
        Ok(found)
    }

    /// These kernels as hosts of `scenario`, which is that of `file`.
    #[cfg(target_os = "linux")]
    pub(super) fn with(
        scenario: &Scenario,
        kernels: &[scenario::KernelHost],
        file: &Path,
        allow_exec: bool,
    ) -> Result<Self, Failure> {
        use super::kernel::linux::{cache, find};

        if kernels.is_empty() {
            return Ok(Self::default());
        }
        let cache = cache()?;
        let init = guest::kernel::build::init(&cache);
        let init = init.map_err(|error| Failure::new(error.to_string()))?;
        let mut guests = Vec::new();
        for host in kernels {
            let kernel = if host.kernel.contains('/') {
                foreign(scenario, host.host, &host.kernel, file, allow_exec)?
            } else {
                find(&cache, &host.kernel)?.path
            };
            guests.push(guest::GuestHost {
                host: host.host,
                kernel,
                init: init.clone(),
                memory: (host.memory.get() >> 20) as u32,
                sysctls: host.sysctls.clone(),
                facts: false,
                tcp_info: host.tcp_info,
            });
        }
        Ok(Self { guests, programs: Vec::new() })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(loaded: &Loaded, _: &Path, _: bool) -> Result<Self, Failure> {
        match loaded.kernels.is_empty() && loaded.programs.is_empty() {
            true => Ok(Self::default()),
            false => Err(Failure::new("hosts that are real kernels or other programs need Linux")),
        }
    }

    /// The hosts that are not modelled.
    pub(super) fn hosts(&self) -> Vec<usize> {
        #[cfg(target_os = "linux")]
        return self
            .guests
            .iter()
            .map(|guest| guest.host)
            .chain(self.programs.iter().map(|program| program.host))
            .collect();
        #[cfg(not(target_os = "linux"))]
        Vec::new()
    }

    /// Are all hosts of the scenario modelled?
    pub(super) fn is_empty(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.guests.is_empty() && self.programs.is_empty();
        #[cfg(not(target_os = "linux"))]
        true
    }

    /// Runs a scenario with its kernels; returns the results of each.
    #[cfg(target_os = "linux")]
    pub(super) fn reports(
        &self,
        scenario: &Scenario,
    ) -> Result<Vec<guest::results::HostResults>, Failure> {
        let done = self.run_guests(scenario, &mut record::NullRecorder, false)?;
        Ok(done.hosts)
    }

    /// Runs a scenario without asking its kernels for the state of their senders.
    #[cfg(target_os = "linux")]
    pub(super) fn run_without_states<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: &mut O,
    ) -> Result<RunOutcome, Failure> {
        self.run_guests(scenario, observer, false).map(|done| done.outcome)
    }

    #[cfg(target_os = "linux")]
    fn run_guests<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: &mut O,
        states: bool,
    ) -> Result<guest::GuestRun, Failure> {
        let endpoints = export::capture::flow_endpoints(scenario);
        let job = guest::Job {
            scenario,
            guests: &self.guests,
            endpoints: &endpoints,
            protocol: guest::uml::Protocol::default(),
            programs: &self.programs,
            states,
            pin: true,
        };
        guest::run(&job, observer).map_err(|error| Failure::new(error.to_string()))
    }

    /// Runs a scenario and measures fairness and queue delays; `others` receives no events.
    pub(super) fn run_sharing<O: Observer>(
        &self,
        scenario: &Scenario,
        sharing: &mut Sharing,
        others: &mut O,
    ) -> Result<RunOutcome, Failure> {
        #[cfg(target_os = "linux")]
        if !self.guests.is_empty() || !self.programs.is_empty() {
            let mut both = sim::ObserverPair(sharing, others);
            return self.run_guests(scenario, &mut both, true).map(|done| done.outcome);
        }
        sharing::run(scenario, sharing, others).map_err(|error| cannot_run(&error))
    }

    /// Runs a scenario: `scenario` is the one that names the kernels, possibly with more taps.
    pub(super) fn run_shared<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: &mut O,
    ) -> Result<RunOutcome, Failure> {
        #[cfg(target_os = "linux")]
        if !self.guests.is_empty() || !self.programs.is_empty() {
            return self.run_guests(scenario, observer, true).map(|done| done.outcome);
        }
        sim::run_shared(scenario, observer).map_err(|error| cannot_run(&error))
    }
}

fn cannot_run(error: &sim::RunError) -> Failure {
    Failure::new(format!("the scenario cannot be run: {error}"))
}

/// The path of a program that a scenario names for a host, from where the scenario's file is.
#[cfg(target_os = "linux")]
fn foreign(
    scenario: &Scenario,
    host: usize,
    program: &str,
    file: &Path,
    allow_exec: bool,
) -> Result<PathBuf, Failure> {
    if !allow_exec {
        let name = &scenario.hosts[host].name;
        let failure = Failure::new(format!("host `{name}` runs the program {program}"));
        return Err(failure.hint("--allow-exec runs it: only for scenarios that you trust"));
    }
    Ok(file.parent().unwrap_or(Path::new("")).join(program))
}
