//! `packetdrill --against`: the same scripts on the model and on a real kernel.

use std::path::PathBuf;
use std::process::ExitCode;

use super::CommonSettings;
use crate::cli::PacketdrillArgs;
use crate::failure::Failure;

#[cfg(not(target_os = "linux"))]
pub(super) fn run(
    _: &str,
    _: &[PathBuf],
    _: &PacketdrillArgs,
    _: CommonSettings,
) -> Result<ExitCode, Failure> {
    Err(Failure::new("`--against` needs Linux: User-Mode Linux is a program of Linux"))
}

#[cfg(target_os = "linux")]
pub(super) use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use guest::kernel::{Cache, Kernel, build};
    use guest::script::ScriptGuest;
    use runner::packet_scripts::real::{BootOptions, RealHost};
    use runner::packet_scripts::{
        Compared, DEFAULT_PROFILE, check_profile, compared_json, compared_table,
    };

    use super::*;
    use crate::commands::kernel::linux::{cache, find};
    use crate::output::print;

    pub(in super::super) fn run(
        kernel: &str,
        files: &[PathBuf],
        args: &PacketdrillArgs,
        settings: CommonSettings,
    ) -> Result<ExitCode, Failure> {
        let cache = cache()?;
        let kernel = match kernel {
            "kernel" => of_profile(&cache, args)?,
            name => find(&cache, name)?,
        };
        let mut settings = CommonSettings { packets: true, ..settings };
        settings.overrides.hz = args.hz.or(Some(kernel.info.hz));
        settings.overrides.holds_packets = true;
        let profile = format!("linux-{}", version(&kernel));
        if settings.profile.is_none() && check_profile(&profile).is_ok() {
            settings.profile = Some(profile);
        }
        let init = build::script_init(&cache);
        let init = init.map_err(|error| Failure::new(error.to_string()))?;
        let boot = |options: &BootOptions| -> Result<Box<dyn RealHost>, String> {
            let guest = ScriptGuest::boot(&kernel.path, &init, options);
            Ok(Box::new(guest.map_err(|error| error.to_string())?))
        };
        let mut results = Vec::new();
        for path in files {
            let model = super::super::one(path, args, &settings, None)?;
            let real = super::super::one(path, args, &settings, Some(&boot))?;
            if let Some(path) = &args.pcap {
                super::super::capture::write(path, &[("model", &model), ("kernel", &real)])?;
            }
            results.push(Compared { model, kernel: real });
        }
        if args.json {
            print(&compared_json(&kernel.info.name, &results))?;
        } else {
            if args.verbose || results.len() == 1 {
                for one in &results {
                    print(&one.text())?;
                }
            }
            print(&compared_table(&kernel.info.name, &results))?;
        }
        let same = results.iter().all(Compared::agrees);
        Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Returns `6.12` for a kernel of release `6.12.117`.
    fn version(kernel: &Kernel) -> String {
        kernel.info.release.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
    }

    /// Finds the kernel of the profile with the tick rate asked for.
    fn of_profile(cache: &Cache, args: &PacketdrillArgs) -> Result<Kernel, Failure> {
        let all = cache.kernels();
        let all = all.map_err(|error| Failure::file("read", cache.path(), &error))?;
        let names: Vec<String> =
            all.iter().map(|kernel| format!("`{}`", kernel.info.name)).collect();
        let profile = args.profile.as_deref();
        let fits = |kernel: &Kernel| {
            profile.is_none_or(|name| name == format!("linux-{}", version(kernel)))
                && args.hz.is_none_or(|hz| hz == kernel.info.hz)
        };
        if let Some(kernel) = all.into_iter().find(fits) {
            return Ok(kernel);
        }
        let profile = profile.unwrap_or(DEFAULT_PROFILE);
        let hz = args.hz.map_or(String::new(), |hz| format!(" with {hz} ticks a second"));
        let failure = Failure::new(format!("there is no kernel for the profile `{profile}`{hz}"));
        Err(failure.hint(match names.is_empty() {
            true => "`ackclock kernel build` makes one".to_owned(),
            false => format!("kernels are {}: name one with --against", names.join(", ")),
        }))
    }
}
