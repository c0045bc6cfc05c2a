//! Packet scripts on the model and on a real kernel: random scripts, whose packets and `tcp_info` after every ACK must
//! be equal, and mutated scripts, whose verdicts must be equal.

mod mutate;
mod random;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Runs random and mutated packet scripts on the model and on a real kernel.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask scripts")]
struct ScriptsOptions {
    /// Number of random scripts.
    #[arg(long, default_value_t = 300)]
    random: u64,
    /// Number of mutated scripts that the kernel fails.
    #[arg(long, default_value_t = 200)]
    mutants: usize,
    /// Seed of both.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kernel of `ackclock kernel list`.
    #[arg(long, default_value = "linux-6.12-hz1000")]
    kernel: String,
    /// Directory for scripts that differ.
    #[arg(long, default_value = "target/scripts")]
    out: PathBuf,
    /// Scripts to mutate.
    #[arg(default_value = "golden/packetdrill")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("cargo xtask scripts");
    let options = match ScriptsOptions::try_parse_from([name].iter().chain(arguments)) {
        Ok(options) => options,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match both(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn both(_: &ScriptsOptions) -> Result<bool, String> {
    Err("scripts on a kernel need Linux".to_owned())
}

#[cfg(target_os = "linux")]
fn both(options: &ScriptsOptions) -> Result<bool, String> {
    let pair = linux::Pair::find(&options.kernel)?;
    let error = |error: std::io::Error| format!("{}: {error}", options.out.display());
    std::fs::create_dir_all(&options.out).map_err(error)?;
    let random = linux::random(&pair, options)?;
    let mutants = linux::mutants(&pair, options)?;
    Ok(random && mutants)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::{Path, PathBuf};

    use guest::kernel::{Cache, Kernel, build};
    use guest::script::ScriptGuest;
    use runner::packet_scripts::real::{BootOptions, RealHost};
    use runner::packet_scripts::{
        Compared, Ending, ScriptOverrides, ScriptResult, ScriptSettings, run_script,
    };
    use units::RandomStream;

    use super::{ScriptsOptions, mutate, random as generator};

    /// Maximum mutants made for each that the kernel fails.
    const TRIES: usize = 20;

    /// The model and the kernel.
    pub(super) struct Pair {
        kernel: Kernel,
        init: PathBuf,
        profile: String,
    }

    impl Pair {
        pub(super) fn find(name: &str) -> Result<Self, String> {
            let cache = Cache::of_user().ok_or("no directory for kernels")?;
            let found = cache.kernel(name).map_err(|error| error.to_string())?;
            let kernel = found.ok_or_else(|| {
                format!("there is no kernel `{name}`: `ackclock kernel build --hz 1000 --name {name}` makes it")
            })?;
            let init = build::script_init(&cache).map_err(|error| error.to_string())?;
            let version: Vec<_> = kernel.info.release.splitn(3, '.').take(2).collect();
            let profile = format!("linux-{}", version.join("."));
            Ok(Self { kernel, init, profile })
        }

        /// Runs a script that is in `directory`.
        fn run(&self, text: &str, directory: &Path, on_kernel: bool) -> ScriptResult {
            let boot = |options: &BootOptions| -> Result<Box<dyn RealHost>, String> {
                let guest = ScriptGuest::boot(&self.kernel.path, &self.init, options);
                Ok(Box::new(guest.map_err(|error| error.to_string())?))
            };
            let settings = ScriptSettings {
                profile: Some(&self.profile),
                relaxed_psh: false,
                packets: true,
                definitions: &[],
                overrides: ScriptOverrides {
                    hz: Some(self.kernel.info.hz),
                    holds_packets: true,
                    ..ScriptOverrides::default()
                },
                files: &|file| fs::read_to_string(directory.join(file)).ok(),
                real: if on_kernel { Some(&boot) } else { None },
            };
            run_script("script", text, &settings)
        }

        fn compare(&self, text: &str, directory: &Path) -> Compared {
            let [model, kernel] = [false, true].map(|real| self.run(text, directory, real));
            Compared { model, kernel }
        }
    }

    /// Runs random scripts; returns whether all are equal.
    pub(super) fn random(pair: &Pair, options: &ScriptsOptions) -> Result<bool, String> {
        let (mut differ, mut queries, mut packets) = (0, 0, 0);
        for number in 0..options.random {
            let text = generator::script(options.seed, number, &|text| {
                pair.run(text, &options.out, false).packets
            });
            let compared = pair.compare(&text, &options.out);
            if let Ending::Unsupported(found) | Ending::Unreadable(found) = &compared.kernel.ending
            {
                return Err(format!("random script {number}: {}", found.message));
            }
            let lines = &compared.kernel.packets;
            queries += lines.iter().filter(|line| line.contains(" | ")).count();
            packets += lines.iter().filter(|line| !line.contains(" | ")).count();
            let Some(at) = compared.first_difference() else { continue };
            differ += 1;
            let file = options.out.join(format!("random-{}-{number}.pkt", options.seed));
            write(&file, &text)?;
            let line =
                |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "none".to_owned());
            println!("{}: differs at {}", file.display(), at + 1);
            println!("  model  {}", line(&compared.model.packets));
            println!("  kernel {}", line(&compared.kernel.packets));
        }
        println!(
            "random scripts: {}, of which {differ} differ; {packets} packets and {queries} readings of tcp_info compared ({})",
            options.random, pair.kernel.info.name
        );
        Ok(differ == 0)
    }

    /// Runs mutated scripts; returns whether all verdicts are equal.
    pub(super) fn mutants(pair: &Pair, options: &ScriptsOptions) -> Result<bool, String> {
        let mut sources = Vec::new();
        for path in &options.files {
            collect(path, &mut sources)?;
        }
        let mut usable = Vec::new();
        for path in &sources {
            let text =
                fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let compared = pair.compare(&text, directory(path));
            if compared.model.ending == Ending::Passed && compared.kernel.ending == Ending::Passed {
                usable.push((path, text));
            }
        }
        println!(
            "{} of {} scripts pass on the model and on the kernel",
            usable.len(),
            sources.len()
        );
        if usable.is_empty() {
            return Err("there is no script to mutate".to_owned());
        }
        let mut draws = RandomStream::named(options.seed, "scripts", "mutants");
        let (mut failing, mut passing, mut same) = (0, 0, 0);
        let mut wrong = [0; 3];
        for _ in 0..TRIES * options.mutants {
            if failing == options.mutants {
                break;
            }
            let (path, text) = &usable[draws.below(usable.len() as u64) as usize];
            let Some(mutant) = mutate::mutant(text, &mut draws) else { continue };
            let model = pair.run(&mutant, directory(path), false);
            if matches!(model.ending, Ending::Unreadable(_) | Ending::Unsupported(_)) {
                continue;
            }
            let kernel = pair.run(&mutant, directory(path), true);
            if matches!(kernel.ending, Ending::Unsupported(_)) {
                continue;
            }
            let compared = Compared { model, kernel };
            let fails = compared.kernel.ending != Ending::Passed;
            failing += usize::from(fails);
            passing += usize::from(!fails);
            if compared.agrees() {
                same += 1;
                continue;
            }
            let kind = match (&compared.model.ending, fails) {
                (Ending::Passed, _) => 0,
                (_, false) => 1,
                _ => 2,
            };
            wrong[kind] += 1;
            let what = ["false pass", "false failure", "another line"][kind];
            let file =
                options.out.join(format!("mutant-{}-{}.pkt", options.seed, failing + passing));
            write(&file, &mutant)?;
            println!("{}: {what}, from {}", file.display(), path.display());
            for (name, one) in [("model ", &compared.model), ("kernel", &compared.kernel)] {
                let found = one.ending.diagnostic();
                let text =
                    found.map_or("passed".to_owned(), |d| format!("{}: {}", d.line, d.message));
                println!("  {name} {text}");
            }
        }
        let [pass, failure, line] = wrong;
        println!(
            "mutated scripts: the kernel fails {failing} and passes {passing}; same verdict and line {same}, \
             false passes {pass}, false failures {failure}, another line {line}"
        );
        Ok(wrong == [0; 3])
    }

    fn directory(path: &Path) -> &Path {
        path.parent().unwrap_or(Path::new(""))
    }

    fn write(path: &Path, text: &str) -> Result<(), String> {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
        if !path.is_dir() {
            files.push(path.to_owned());
            return Ok(());
        }
        let error = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(error)? {
            entries.push(entry.map_err(error)?.path());
        }
        entries.sort();
        for entry in entries {
            if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "pkt") {
                collect(&entry, files)?;
            }
        }
        Ok(())
    }
}
