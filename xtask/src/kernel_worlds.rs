//! Random worlds with real kernels as hosts, compared with the same worlds of models: first
//! differences counted by their kind, and the smallest scenario of each kind.
//!
//! The worlds are those of [`simtest::worlds`], with Linux hosts; in mixed ones some hosts are models
//! in both grades. Results are appended to a file at once, so that an interrupted run can be resumed.

use std::path::Path;
use std::process::ExitCode;

/// Records the narrow worlds of a comparison with kernels into a file of `golden/linux-closed`.
pub(crate) fn record(comparison: Comparison<'_>, file: &Path) -> ExitCode {
    #[cfg(target_os = "linux")]
    let recorded = record::run(comparison, file);
    #[cfg(not(target_os = "linux"))]
    let recorded = {
        let _ = (comparison, file);
        Err("recordings of a kernel need Linux".to_owned())
    };
    match recorded {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// The worlds to compare, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison<'a> {
    pub(crate) seed: u64,
    /// Profile of the hosts that are guests.
    pub(crate) profile: &'a str,
    /// Name of their kernel.
    pub(crate) kernel: &'a str,
    /// Congestion control of the hosts, drawn for each; none named: as the worlds have it.
    pub(crate) cc: &'a [WorldCc],
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Some hosts are models in both grades.
    pub(crate) mixed: bool,
    /// All hosts request ECN, and all lines mark.
    pub(crate) ecn: bool,
    /// Worlds as wide as the net.
    pub(crate) wide: bool,
    /// Only worlds of one flow.
    pub(crate) one_flow: bool,
    /// Searches the smallest scenario with each kind of difference.
    pub(crate) shrinks: bool,
    /// Number of threads; by default, that of processors.
    pub(crate) jobs: Option<usize>,
    /// What the models are compared with.
    pub(crate) against: Against,
    /// Directory of kernels' packets: those of worlds that are in it are not run again.
    pub(crate) kept: Option<&'a Path>,
}

/// Congestion control of Linux hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WorldCc {
    /// Reno.
    Reno,
    /// CUBIC.
    Cubic,
    /// BBR version 1.
    Bbr,
    /// BBR version 3, of a kernel whose `bbr` it is.
    Bbr3,
}

impl WorldCc {
    /// The name in scenarios.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Bbr3 => "bbr3",
        }
    }
}

/// Reference that the models of worlds are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Against {
    /// A kernel; run `twice`, to see whether it differs from itself.
    Kernel { twice: bool },
    /// The same models, all packets late by a random time up to a microsecond.
    Jitter,
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: Comparison<'_>, _: &Path) -> ExitCode {
    eprintln!("worlds against a kernel need Linux");
    ExitCode::from(2)
}

#[cfg(target_os = "linux")]
pub(crate) fn run(comparison: Comparison<'_>, out: &Path) -> ExitCode {
    match linux::run(comparison, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(target_os = "linux")]
mod drawn;
#[cfg(target_os = "linux")]
mod draws;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod phases;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod shown;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use guest::compare::{FlowComparison, PacketRecord, compare};
    use guest::kernel::{Cache, build};
    use guest::likeness::Likeness;
    use guest::uml::Protocol;
    use guest::{GuestHost, Job, RunError};
    use scenario::{Overrides, load};
    use sim::Scenario;
    use sim::scenario::StackSpec;
    use simtest::worlds;
    use units::{Duration, Instant};

    use super::drawn::{
        has_links, jittered, marking, mixed_world, wide_world, with_controllers, world,
    };
    use super::{Against, Comparison};
    use super::{draws, kept, phases, shown};

    /// Maximum hosts of a world: each is a process.
    pub(super) const MOST_HOSTS: usize = 8;
    /// Maximum runs of one search for the smallest scenario.
    const MOST_RUNS: u32 = 80;
    /// Tolerated difference of packet times, which is no difference of the packets sent.
    const TOLERANCE: Duration = Duration::from_millis(1);

    /// A kernel with its process 1.
    pub(super) struct Kernel {
        path: PathBuf,
        init: PathBuf,
        pub(super) name: String,
        /// Profile of the hosts that are guests.
        profile: String,
        /// Megabytes of each guest.
        memory: u32,
        /// Directory of packets that it sent.
        kept: Option<PathBuf>,
    }

    /// What the models are compared with.
    enum Reference {
        Kernel { kernel: Kernel, twice: bool },
        Jitter,
    }

    impl Reference {
        fn name(&self) -> &str {
            match self {
                Self::Kernel { kernel, .. } => &kernel.name,
                Self::Jitter => "jitter",
            }
        }
    }

    impl Kernel {
        /// Runs a world with its guests; `states`: with the values of tcp_info.
        pub(super) fn run(
            &self,
            scenario: &Scenario,
            states: bool,
            record: &mut PacketRecord,
        ) -> Result<(), RunError> {
            let job = Job {
                scenario,
                guests: &self.guests(scenario),
                endpoints: &export::capture::flow_endpoints(scenario),
                protocol: Protocol::default(),
                programs: &[],
                states,
                pin: true,
            };
            guest::run(&job, record).map(|_| ())
        }

        /// Every host of a scenario with the profile of the guests as a guest.
        fn guests(&self, scenario: &Scenario) -> Vec<GuestHost> {
            let guest = |host| GuestHost {
                host,
                kernel: self.path.clone(),
                init: self.init.clone(),
                memory: self.memory,
                sysctls: Vec::new(),
                facts: false,
                tcp_info: Duration::from_millis(10),
            };
            let is_guest = |&host: &usize| {
                let StackSpec::Tcp(stack) = &scenario.hosts[host].stack else { return false };
                stack.profile.name == self.profile
            };
            (0..scenario.hosts.len()).filter(is_guest).map(guest).collect()
        }
    }

    pub(super) fn run(comparison: Comparison<'_>, out: &Path) -> Result<(), String> {
        let Comparison {
            seed,
            profile,
            kernel: kernel_name,
            cc,
            first,
            count,
            mixed,
            ecn,
            wide,
            one_flow,
            shrinks,
            jobs,
            against,
            kept,
        } = comparison;
        let draw = if mixed { mixed_world } else { world };
        let world = |number| {
            let text = if wide {
                wide_world(seed, number, profile, one_flow || number % 2 == 0)
            } else {
                draw(seed, number, profile)
            };
            let text = with_controllers(text, (seed, number), profile, cc);
            if ecn { marking(&text) } else { text }
        };
        let controllers: String = cc.iter().map(|cc| format!("-{}", cc.name())).collect();
        let kind_of_worlds = [
            &*controllers,
            if mixed { "-mixed" } else { "" },
            if ecn { "-ecn" } else { "" },
            if wide { "-wide" } else { "" },
            if wide && one_flow { "-one-flow" } else { "" },
        ]
        .concat();
        let reference = match against {
            Against::Kernel { twice } => {
                let kept = kept.map(Path::to_path_buf);
                Reference::Kernel {
                    kernel: Kernel { kept, ..kernel(kernel_name, profile, wide)? },
                    twice,
                }
            }
            Against::Jitter => Reference::Jitter,
        };
        let name = reference.name().to_owned();
        fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        if count == 1 {
            let file = out.join(format!("world-{first}.toml"));
            let written = fs::write(&file, world(first));
            written.map_err(|error| format!("{}: {error}", file.display()))?;
            println!("ackclock compare {}", file.display());
        }
        let file = out.join(format!("{name}{kind_of_worlds}-seed-{seed}.csv"));
        let known = known(&file)?;
        let rows = File::options().create(true).append(true).open(&file);
        let rows = Mutex::new(rows.map_err(|error| format!("{}: {error}", file.display()))?);
        let results = Mutex::new(known);
        let next = AtomicU64::new(first);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= first.saturating_add(count) {
                    return;
                }
                let known = results.lock().is_ok_and(|results| results.contains_key(&number));
                if known && count > 1 {
                    continue;
                }
                let text = world(number);
                if one_flow && text.matches("[[flow]]").count() != 1 {
                    continue;
                }
                let result = result_of(&text, &reference, count == 1);
                // No thread panics while it holds a lock.
                if let (Ok(mut rows), Ok(mut results)) = (rows.lock(), results.lock()) {
                    let _ = writeln!(rows, "{number},{}", result.to_row());
                    results.insert(number, result);
                }
            }
        };
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..jobs.unwrap_or_else(processors).max(1) {
                scope.spawn(worker);
            }
        });
        let results = results.into_inner().map_err(|error| error.to_string())?;
        let mut kinds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (&number, result) in results.range(first..first.saturating_add(count)) {
            kinds.entry(&result.kind).or_default().push(number);
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(kind, numbers)| (core::cmp::Reverse(numbers.len()), *kind));
        let compared: usize = kinds.iter().map(|(_, numbers)| numbers.len()).sum();
        println!("seed {seed}, {name}: first differences of {compared} worlds");
        for (kind, numbers) in &kinds {
            println!("{:>6}  {kind}, first in world {}", numbers.len(), numbers[0]);
        }
        let results = results.range(first..first.saturating_add(count));
        let run = results.clone().filter(|(_, result)| !result.kind.starts_with(NOT_RUN));
        // What BBR draws at random no model knows: in wide worlds it counts apart.
        let run =
            run.map(|(&number, result)| (result, wide && world(number).contains("cc = \"bbr")));
        let run: Vec<_> = run.collect();
        let groups = [
            ("one flow", false, false),
            ("one flow with BBR", false, true),
            ("several flows", true, false),
            ("several flows with BBR", true, true),
        ];
        for (what, several, bbr) in groups {
            let mut worlds = run.clone();
            worlds.retain(|(result, has_bbr)| (result.flows > 1, *has_bbr) == (several, bbr));
            let worlds: Vec<_> = worlds.into_iter().map(|(result, _)| result).collect();
            let worlds = worlds.iter();
            if worlds.len() == 0 {
                continue;
            }
            let count = |is: fn(&WorldResult) -> bool| worlds.clone().filter(|one| is(one)).count();
            let of_phase = |n: usize| worlds.clone().filter(|one| one.of_phase[n]).count();
            println!(
                "of {} worlds of {what}: {} without a difference; {} with the same data packets and number of \
                 acknowledgments, within 1 % and a tick; {} within 1 % in duration, retransmissions and largest window, \
                 {} within 5 %",
                worlds.clone().count(),
                count(|one| one.kind == SAME),
                count(|one| one.identical),
                count(|one| one.near),
                count(|one| one.within5),
            );
            if !several {
                println!(
                    "   with what BBR drew at random inferred: {} the same packets, {} within 1 %, {} within 5 %",
                    of_phase(0),
                    of_phase(1),
                    of_phase(2),
                );
            }
        }
        for (number, result) in results.filter(|(_, result)| !result.draws.is_empty()) {
            println!("world {number}, {}: drawn {}", result.kind, result.draws);
        }
        let differs = kinds.iter().any(|(kind, _)| *kind == DIFFERS);
        for (kind, numbers) in kinds {
            if kind == SAME || kind.starts_with(NOT_RUN) || !shrinks {
                continue;
            }
            let mut runs = 0;
            let text = world(numbers[0]);
            let small = worlds::shrink(&text, |text| {
                runs += 1;
                runs <= MOST_RUNS
                    && has_links(text)
                    && result_of(text, &reference, false).kind == kind
            });
            let kind = kind.replace([' ', ','], "-");
            let file = out.join(format!("{name}{kind_of_worlds}-{kind}.toml"));
            fs::write(&file, small).map_err(|error| format!("{}: {error}", file.display()))?;
            println!("ackclock compare {}", file.display());
        }
        if differs { Err("a run with kernels is not the same twice".to_owned()) } else { Ok(()) }
    }

    const SAME: &str = "no difference";
    const NOT_RUN: &str = "not run";
    const DIFFERS: &str = "kernel differs from itself";

    /// The kernel with this name, for hosts of a profile; for `wide` worlds with memory for their windows.
    pub(super) fn kernel(name: &str, profile: &str, wide: bool) -> Result<Kernel, String> {
        let none = || format!("there is no kernel {name}: `ackclock kernel build` makes one");
        let cache = Cache::of_user().ok_or_else(none)?;
        let kernel = cache.kernel(name).map_err(|error| error.to_string())?.ok_or_else(none)?;
        let init = build::init(&cache).map_err(|error| error.to_string())?;
        Ok(Kernel {
            path: kernel.path,
            init,
            name: kernel.info.name,
            profile: profile.to_owned(),
            memory: if wide { 512 } else { 64 },
            kept: None,
        })
    }

    /// What the comparison of a world gave.
    struct WorldResult {
        /// Kind of the first difference.
        kind: String,
        /// Number of flows.
        flows: usize,
        /// All flows are identical in the sense of [`Likeness::is_identical`].
        identical: bool,
        /// All flows are near in the sense of [`Likeness::is_near`].
        near: bool,
        /// The same, within 5 %.
        within5: bool,
        /// The three with what BBR drew at random as it fits the kernel best.
        of_phase: [bool; 3],
        /// The inferred draws of BBR version 3; empty without it.
        draws: String,
    }

    impl WorldResult {
        fn unlike(kind: String, flows: usize) -> Self {
            let [identical, near, within5] = [false; 3];
            let draws = String::new();
            Self { kind, flows, identical, near, within5, of_phase: [false; 3], draws }
        }

        fn to_row(&self) -> String {
            let Self { kind, flows, identical, near, within5, of_phase: [a, b, c], draws } = self;
            format!("{kind:?},{flows},{identical},{near},{within5},{a},{b},{c},{draws}")
        }

        fn from_row(row: &str) -> Option<Self> {
            let mut fields = row.rsplitn(9, ',');
            let draws = fields.next()?.to_owned();
            let mut flag = || fields.next()?.parse().ok();
            let [c, b, a] = [flag()?, flag()?, flag()?];
            let within5 = fields.next()?.parse().ok()?;
            let near = fields.next()?.parse().ok()?;
            let identical = fields.next()?.parse().ok()?;
            let flows = fields.next()?.parse().ok()?;
            let kind = fields.next()?.trim_matches('"').to_owned();
            Some(Self { kind, flows, identical, near, within5, of_phase: [a, b, c], draws })
        }
    }

    /// Reads the results of an earlier run.
    fn known(file: &Path) -> Result<BTreeMap<u64, WorldResult>, String> {
        let Ok(text) = fs::read_to_string(file) else { return Ok(BTreeMap::new()) };
        // The last line may be truncated.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let rows = whole.lines().map(|line| {
            let (number, result) = line.split_once(',')?;
            Some((number.parse().ok()?, WorldResult::from_row(result)?))
        });
        let wrong = || format!("{}: this is no file of an earlier run", file.display());
        rows.collect::<Option<_>>().ok_or_else(wrong)
    }

    fn loaded(text: &str) -> Result<Scenario, String> {
        let loaded = load(text, "world", &Overrides::default());
        loaded.map(|loaded| loaded.scenario).map_err(|_| "no scenario of Linux hosts".to_owned())
    }

    /// The packets of the world with models.
    pub(super) fn modelled(scenario: &mut Scenario) -> Result<PacketRecord, String> {
        let mut record = PacketRecord::new(scenario, Instant::ZERO);
        let outcome =
            sim::run(scenario, &mut record).map_err(|_| "the model does not run it".to_owned())?;
        record.end(outcome.ended);
        Ok(record)
    }

    fn result_of(text: &str, reference: &Reference, shows: bool) -> WorldResult {
        differences(text, reference, shows)
            .unwrap_or_else(|reason| WorldResult::unlike(format!("{NOT_RUN}: {reason}"), 0))
    }

    fn differences(text: &str, reference: &Reference, shows: bool) -> Result<WorldResult, String> {
        let mut scenario = loaded(text)?;
        if scenario.hosts.len() > MOST_HOSTS {
            return Err("too many hosts".to_owned());
        }
        let mut real = PacketRecord::new(&mut scenario, Instant::ZERO);
        let unlike = |kind| Ok(WorldResult::unlike(kind, scenario.flows.len()));
        match reference {
            Reference::Jitter => real = modelled(&mut loaded(&jittered(text))?)?,
            Reference::Kernel { kernel, twice } => {
                let run = |record: &mut PacketRecord| kernel.run(&scenario, false, record);
                let ran = match &kernel.kept {
                    Some(directory) => {
                        kept::kept_or_run(directory, &kernel.name, text, &mut real, run)?
                    }
                    None => run(&mut real),
                };
                match ran {
                    Ok(()) => {}
                    Err(RunError::Unsupported(what)) => return Err(what.what),
                    // A failure of a kernel is a result of its own.
                    Err(error) => {
                        let text = error.to_string();
                        let line = text.lines().next().unwrap_or_default();
                        return unlike(format!("kernel fails: {line}"));
                    }
                }
                if *twice {
                    let mut again = PacketRecord::new(&mut scenario.clone(), Instant::ZERO);
                    run(&mut again).map_err(|error| error.to_string())?;
                    let flows = compare(&scenario, &real, &again, Duration::ZERO);
                    let same =
                        |flow: &FlowComparison| flow.first.is_none() && flow.largest_time_ns == 0;
                    if !flows.iter().all(same) {
                        return unlike(DIFFERS.to_owned());
                    }
                }
            }
        }
        guest::card::start_as(&real, &mut scenario);
        let of_kernel = matches!(reference, Reference::Kernel { .. });
        let mut draws = String::new();
        let mut model = if of_kernel && !draws::senders(&scenario).is_empty() {
            let inferred = draws::inferred(&scenario, &real)?;
            draws = inferred.draws;
            inferred.model
        } else {
            modelled(&mut scenario)?
        };
        let [identical, near, within5] = likeness(&scenario, &model, &real);
        let mut flows = compare(&scenario, &model, &real, TOLERANCE);
        let differs = flows.iter().any(|flow| flow.first.is_some()) || !near;
        if of_kernel
            && differs
            && let Some(inferred) = phases::inferred(&scenario, &real)?
        {
            (model, draws) = (inferred.model, inferred.draws);
            flows = compare(&scenario, &model, &real, TOLERANCE);
        }
        let of_phase = likeness(&scenario, &model, &real).max([identical, near, within5]);
        let first = flows.iter().filter(|flow| flow.first.is_some());
        let first = first.min_by_key(|flow| flow.first.as_ref().map(|first| first.at_ns()));
        if shows {
            flows.iter().enumerate().for_each(|(n, flow)| shown::show(n, flow, &model, &real));
        }
        let kind = first.and_then(|flow| flow.kind()).unwrap_or_else(|| SAME.to_owned());
        Ok(WorldResult { kind, flows: flows.len(), identical, near, within5, of_phase, draws })
    }

    /// Whether all flows are identical, near, and within 5 %.
    fn likeness(scenario: &Scenario, model: &PacketRecord, real: &PacketRecord) -> [bool; 3] {
        let flows = 0..scenario.flows.len();
        let alike: Vec<_> = flows.map(|flow| Likeness::of(flow, model, real)).collect();
        [
            alike.iter().all(Likeness::is_identical),
            alike.iter().all(Likeness::is_near),
            alike.iter().all(|flow| flow.is_within(5)),
        ]
    }
}
