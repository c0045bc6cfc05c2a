//! Models of QUIC stacks beside the stacks themselves, on drawn paths: duration, losses, first differences.

use std::ffi::OsString;
use std::process::ExitCode;

/// The stack that is compared unless another is named; its page of the ledger has no name of a stack.
#[cfg(target_os = "linux")]
const FIRST_STACK: &str = "quic-go-0.65";

#[cfg(target_os = "linux")]
mod draws;
#[cfg(all(test, target_os = "linux"))]
mod recorded;
#[cfg(target_os = "linux")]
mod releases;
#[cfg(target_os = "linux")]
mod table;

#[cfg(target_os = "linux")]
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    linux::run(arguments)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &[OsString]) -> ExitCode {
    eprintln!("QUIC stacks as hosts need Linux");
    ExitCode::from(2)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::path::Path;
    use std::process::ExitCode;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::{fs, thread};

    use clap::Parser;
    use guest::kernel::Cache;
    use guest::stack::StackProgram;
    use guest::stack::build::{self, StackRecipe};
    use guest::stack::compare::{SentDifference, SentRecord};
    use scenario::{Overrides, Stacks, load};
    use units::Duration;

    use super::draws::DrawnPath;
    use super::releases::{self, Releases};
    use super::table::{self, Measured, PathResult};

    /// Difference of packet times that counts.
    const TOLERANCE: Duration = Duration::from_millis(1);

    /// Runs transfers over drawn paths with models of a QUIC stack and with the stack itself.
    #[derive(Debug, Parser)]
    #[command(
        name = "cargo xtask stacks",
        after_help = "Examples:\n  cargo xtask stacks --count 200 --seed 7      the table of 200 paths\n  \
                      cargo xtask stacks --seed 7 --path 12        the scenario of path 12, and its line\n  \
                      cargo xtask stacks --latest                  do logs of the newest releases have all fields?"
    )]
    struct StackOptions {
        /// Number of paths.
        #[arg(long, default_value_t = 40)]
        count: u64,
        /// Seed of all paths.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Run only this path, and print its scenario.
        #[arg(long, conflicts_with_all = ["count", "ledger"])]
        path: Option<u64>,
        /// The stack, which `ackclock stack build` has built [default: quic-go-0.65].
        #[arg(long, value_name = "NAME")]
        stack: Option<String>,
        /// The model [default: the stack's].
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
        /// Check the fields of the logs of the stacks that are built, or of `--stack`.
        #[arg(long, conflicts_with_all = ["path", "latest", "ledger"])]
        logs: bool,
        /// With `--logs`: record the logs in golden/quic/releases.
        #[arg(long, requires = "logs")]
        record: bool,
        /// Build the newest releases that the registries have, and check the fields of their logs; without `--stack` of
        /// all, for docs/ledger/quic-fields.md.
        #[arg(long, conflicts_with_all = ["path", "ledger"])]
        latest: bool,
        /// Number of threads; by default, the number of processors.
        #[arg(long)]
        jobs: Option<usize>,
        /// Write the page of the ledger: docs/ledger/quic-stacks.md of quic-go, quic-stacks-NAME.md of others.
        #[arg(long)]
        ledger: bool,
    }

    pub(super) fn run(arguments: &[OsString]) -> ExitCode {
        let name = OsString::from("cargo xtask stacks");
        let options = match StackOptions::try_parse_from([name].iter().chain(arguments)) {
            Ok(options) => options,
            Err(error) => {
                // To standard output with --help, else to standard error.
                let _ = error.print();
                return ExitCode::from(error.exit_code() as u8);
            }
        };
        let releases = match (options.latest, options.record) {
            (true, _) => Some(Releases::Newest),
            (false, true) => Some(Releases::Recorded),
            (false, false) => options.logs.then_some(Releases::Pinned),
        };
        let result = match releases {
            Some(releases) => releases::check(releases, options.stack.as_deref()),
            None => compare(&options).map(|()| true),
        };
        match result {
            Ok(is_good) => ExitCode::from(u8::from(!is_good)),
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(2)
            }
        }
    }

    fn compare(options: &StackOptions) -> Result<(), String> {
        let name = options.stack.as_deref().unwrap_or(super::FIRST_STACK);
        let recipe = build::find(name).ok_or_else(|| format!("there is no stack `{name}`"))?;
        let stack = program(recipe)?;
        let profile = options.profile.as_deref().unwrap_or(recipe.profile);
        let numbers: Vec<u64> = match options.path {
            Some(number) => vec![number],
            None => (0..options.count).collect(),
        };
        let next = AtomicU64::new(0);
        let results = Mutex::new(Vec::new());
        let processors = || thread::available_parallelism().map_or(1, Into::into);
        thread::scope(|scope| {
            for _ in 0..options.jobs.unwrap_or_else(processors) {
                scope.spawn(|| {
                    while let Some(&number) =
                        numbers.get(next.fetch_add(1, Ordering::Relaxed) as usize)
                    {
                        let path = DrawnPath::draw(options.seed, number);
                        let result = measured(&path, profile, recipe, stack)
                            .map_err(|error| format!("path {number}: {error}"));
                        if let Ok(mut results) = results.lock() {
                            results.push(result);
                        }
                    }
                });
            }
        });
        let results = results.into_inner().unwrap_or_default();
        let mut results: Vec<PathResult> = results.into_iter().collect::<Result<_, _>>()?;
        results.sort_by_key(|result| result.number);
        if options.path.is_some() {
            for result in &results {
                print!("{}", result.path.scenario(profile, Some(recipe.name)));
            }
        }
        let title = (profile, recipe.name);
        print!("{}{}", table::paths(&results), table::summary(title, &results));
        if options.ledger {
            let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ledger");
            let page = ledger.join(match recipe.name {
                super::FIRST_STACK => "quic-stacks.md".to_owned(),
                name => format!("quic-stacks-{name}.md"),
            });
            let text = table::page(title, options.seed, &results);
            fs::write(&page, text).map_err(|error| format!("{}: {error}", page.display()))?;
        }
        Ok(())
    }

    fn program(recipe: &StackRecipe) -> Result<&'static StackProgram, String> {
        let cache = Cache::of_user().ok_or("neither HOME nor XDG_CACHE_HOME is set")?;
        let found = build::built(&cache, recipe.name).map_err(|error| error.to_string())?;
        let program = found.as_ref().and_then(build::BuiltStack::stack);
        let program = program.ok_or_else(|| {
            format!("run `ackclock stack build {}`: it is not built", recipe.wanted)
        })?;
        Ok(program.leak())
    }

    /// Runs one path with both.
    fn measured(
        path: &DrawnPath,
        profile: &str,
        recipe: &StackRecipe,
        stack: &'static StackProgram,
    ) -> Result<PathResult, String> {
        let run = |with: Option<&str>| {
            let find = move |_: &str| Ok(stack as &dyn quic::real::RealStack);
            let overrides = Overrides { stacks: Stacks::programs(find), ..Overrides::default() };
            let loaded =
                load(&path.scenario(profile, with), "path", &overrides).map_err(|errors| {
                    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
                })?;
            let mut record = SentRecord::new(&loaded.scenario);
            let outcome = sim::run(&loaded.scenario, &mut record).map_err(|e| e.to_string())?;
            let flow = &outcome.flows[0];
            let measured = Measured {
                seconds: flow.duration.as_secs_f64(),
                finished: flow.finished,
                lost: record.ends[0][0].dropped,
            };
            Ok::<_, String>((measured, record))
        };
        let (model, modelled) = run(None)?;
        let (real, sent) = run(Some(recipe.name))?;
        let ends = [&modelled.ends[0][0], &sent.ends[0][0]];
        let first = SentDifference::of(ends[0], ends[1], TOLERANCE);
        let first_time = first.time.and_then(|number| {
            let at = |end: &guest::stack::compare::EndRecord| {
                Some(end.data.get(number)?.at.as_secs_f64())
            };
            Some((number as u64 + 1, at(ends[0])?, at(ends[1])?))
        });
        Ok(PathResult {
            number: path.number,
            path: path.clone(),
            model,
            stack: real,
            first_size: first.size.map(|number| number as u64 + 1),
            first_time,
        })
    }
}
