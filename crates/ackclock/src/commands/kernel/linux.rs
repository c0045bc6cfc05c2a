//! The commands, on systems that run User-Mode Linux.

use std::io::IsTerminal as _;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;

use guest::kernel::build::{Progress, Recipe, Source};
use guest::kernel::check::{BYTES, Checked, check as check_kernel};
use guest::kernel::{Cache, Kernel, build as kernel_build};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::cli::{BuildArgs, KernelCheckArgs, ListArgs};
use crate::failure::Failure;
use crate::output::print;
use crate::visible::ShownPath as _;

/// Returns the user's cache.
pub(crate) fn cache() -> Result<Cache, Failure> {
    let none = || Failure::new("no directory for kernels: neither HOME nor XDG_CACHE_HOME is set");
    Cache::of_user().ok_or_else(none)
}

pub(super) fn build(args: BuildArgs) -> Result<ExitCode, Failure> {
    let source = match args.source {
        None => Source::Debian(args.version),
        Some(path) if path.is_dir() => Source::Tree(path),
        Some(path) => Source::Archive(path),
    };
    let jobs =
        args.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZeroUsize::get));
    let recipe = Recipe { source, name: args.name, hz: args.hz, jobs };
    let cache = cache()?;
    let shown = Shown::new();
    let built = kernel_build::build(&recipe, &cache, &mut |progress| shown.at(progress));
    let init = kernel_build::init(&cache);
    drop(shown);
    let kernel = built.map_err(|error| Failure::new(error.to_string()))?;
    init.map_err(|error| Failure::new(error.to_string()))?;
    let unknown = &kernel.info.unknown_options;
    if !unknown.is_empty() {
        let options = unknown.join(", ");
        crate::failure::print_error(&format!("this kernel does not have {options}\n"));
    }
    print(&format!("{}\n{}\n", line(&kernel), kernel.path.shown()))?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the progress of a build on standard error.
struct Shown(Option<ProgressBar>);

impl Shown {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg} {bar:40} {pos} of about {len}");
            ProgressBar::new(1).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self(bar)
    }

    fn at(&self, progress: Progress<'_>) {
        match (&self.0, progress) {
            (Some(bar), Progress::Step(step)) => bar.set_message(step.to_owned()),
            (Some(bar), Progress::Objects(done, all)) => {
                bar.set_length(all.into());
                bar.set_position(done.into());
            }
            (None, Progress::Step(step)) => crate::failure::print_error(&format!("{step}\n")),
            (None, Progress::Objects(done, all)) if done % 100 == 0 => {
                crate::failure::print_error(&format!("{done} of about {all} objects\n"));
            }
            (None, Progress::Objects(..)) => {}
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn line(kernel: &Kernel) -> String {
    let info = &kernel.info;
    format!("{:<16} {} at {} Hz, from {}", info.name, info.release, info.hz, info.source)
}

fn kernels(cache: &Cache) -> Result<Vec<Kernel>, Failure> {
    cache.kernels().map_err(|error| Failure::file("read", cache.path(), &error))
}

pub(super) fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let cache = cache()?;
    let kernels = kernels(&cache)?;
    if args.json {
        let infos: Vec<_> = kernels.iter().map(|kernel| &kernel.info).collect();
        print(&format!("{:#}\n", json!({ "kernels": infos })))?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines: String = kernels.iter().map(|kernel| line(kernel) + "\n").collect();
    print(&lines)?;
    if kernels.is_empty() {
        crate::failure::print_error("there is no kernel; `ackclock kernel build` makes one\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the kernel with this name.
pub(crate) fn find(cache: &Cache, name: &str) -> Result<Kernel, Failure> {
    let found = cache.kernel(name).map_err(|error| Failure::file("read", cache.path(), &error))?;
    let Some(kernel) = found else {
        let names: Vec<String> =
            kernels(cache)?.into_iter().map(|kernel| format!("`{}`", kernel.info.name)).collect();
        let failure = Failure::new(format!("there is no kernel `{name}`"));
        return Err(match (name.strip_prefix("linux-"), names.is_empty()) {
            (Some(version), true) => {
                failure.hint(format!("`ackclock kernel build {version}` makes it"))
            }
            (_, true) => failure.hint("`ackclock kernel build` makes one"),
            (_, false) => failure.hint(format!("kernels are {}", names.join(", "))),
        });
    };
    Ok(kernel)
}

pub(super) fn check(args: &KernelCheckArgs) -> Result<ExitCode, Failure> {
    let cache = cache()?;
    let kernels = match &args.name {
        Some(name) => vec![find(&cache, name)?],
        None => kernels(&cache)?,
    };
    if kernels.is_empty() {
        let failure = Failure::new("there is no kernel to check");
        return Err(failure.hint("`ackclock kernel build` makes one"));
    }
    let init = kernel_build::init(&cache).map_err(|error| Failure::new(error.to_string()))?;
    let mut checks = Vec::new();
    for kernel in &kernels {
        let checked = check_kernel(&kernel.path, &init)
            .map_err(|error| Failure::new(format!("{}: {error}", kernel.info.name)))?;
        if !args.json {
            print(&text(kernel, &checked))?;
        }
        checks.push(checked);
    }
    let good = checks.iter().all(Checked::is_good);
    if args.json {
        let results: Vec<_> =
            kernels.iter().zip(&checks).map(|(kernel, checked)| as_json(kernel, checked)).collect();
        print(&format!("{:#}\n", json!({ "checks": results })))?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_json(kernel: &Kernel, checked: &Checked) -> serde_json::Value {
    let flow = &checked.run.outcome.flows[0];
    json!({
        "kernel": kernel.info,
        "good": checked.is_good(),
        "digests": checked.digests,
        "packets": checked.packets,
        "bytes": flow.bytes.get(),
        "duration_s": flow.duration.as_secs_f64(),
        "build": checked.build,
    })
}

fn text(kernel: &Kernel, checked: &Checked) -> String {
    let flow = &checked.run.outcome.flows[0];
    let verdict = if checked.is_good() { "the same twice" } else { "NOT the same twice" };
    let mut text = format!(
        "{}\n  {BYTES} bytes at 100 Mbit/s and 20 ms in {:.6} s, {} packets: {verdict}\n",
        line(kernel),
        flow.duration.as_secs_f64(),
        checked.packets[0],
    );
    for digest in &checked.digests {
        text += &format!("  sha256 {digest}\n");
    }
    text += "  its build:\n";
    for (name, value) in &checked.build {
        text += &format!("    {name:<28} {value}\n");
    }
    text
}
