//! `kernel` of `[host.NAME]`: a host that is a real Linux kernel, for programs that can run one.

use units::{Bytes, Duration};

use super::host::HostTable;
use super::keys::{Key, Located, ScenarioReader};
use super::kinds::{DurationType, SizeType, TextType};
use super::setting::{KnobsType, RawValue};
use super::source::SpannedError;
use super::tree::TomlValue;

pub(super) static KERNEL: Key<TextType> = Key::optional(
    "kernel",
    TextType,
    "none, the host is modelled",
    "the host is a real Linux kernel in virtual time: its name in `ackclock kernel list`, or a path; \
     the profile gives its other settings, and models the host in runs without kernels",
);
pub(super) static KERNEL_MEMORY: Key<SizeType> = Key::optional(
    "kernel_memory",
    SizeType { least: Bytes(32_000_000), most: Bytes(64 << 30) },
    "64MiB",
    "memory of the host's kernel",
);
pub(super) static SYSCTL: Key<KnobsType> = Key::optional(
    "sysctl",
    KnobsType,
    "those of the profile",
    "sysctls of the host's kernel under their own names, in quotes",
);

pub(super) static GUEST: Key<TextType> = Key::optional(
    "guest",
    TextType,
    "none, the host is modelled",
    "the host is a program in virtual time, connected by a socket: a path (docs/kernels.md has the protocol)",
);
pub(super) static TCP_INFO: Key<DurationType> = Key::optional(
    "tcp_info",
    DurationType { least: Duration::from_micros(1), default_unit: "ms" },
    "10ms",
    "how often outputs with the state of a sender have a row of the host's kernel: what `tcp_info` says then; \
     asking moves no packet",
);

/// Interval of rows of a kernel of which the scenario says nothing.
pub const TCP_INFO_INTERVAL: Duration = Duration::from_millis(10);
/// Memory of a kernel of which the scenario says nothing.
const MEMORY: Bytes = Bytes(64 << 20);

/// A host that is a real kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelHost {
    /// Index of the host.
    pub host: usize,
    /// Name of the kernel, or a path if it contains `/`.
    pub kernel: String,
    /// Memory of the kernel.
    pub memory: Bytes,
    /// Sysctls that the scenario sets, in the order of the file.
    pub sysctls: Vec<(String, String)>,
    /// How often outputs have a row of its senders.
    pub tcp_info: Duration,
}

/// A host that is another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramHost {
    /// Index of the host.
    pub host: usize,
    /// Path of the program.
    pub program: String,
}

/// Adds host number `host` to the kernels of `reader`, if it is a kernel.
pub(super) fn kernel(host: usize, table: &HostTable, reader: &mut ScenarioReader) {
    if let Some(program) = &table.guest {
        if !reader.allows_kernels {
            let message = "a host that is another program cannot be part of this command";
            let hint = "`ackclock run` can run it; without `guest` the host is modelled";
            reader.report(SpannedError::new(program.span, message).hint(hint.to_owned()));
        } else if table.kernel.is_some() {
            let message = "a host has a `kernel` or a `guest`, not both";
            reader.report(SpannedError::new(program.span, message));
        } else {
            let program = program.value.clone();
            reader.programs.push(ProgramHost { host, program });
        }
    }
    let Some(kernel) = &table.kernel else {
        let alone = [
            table.kernel_memory.as_ref().map(|memory| memory.span),
            table.sysctl.as_ref().map(|sysctl| sysctl.span),
            table.tcp_info.as_ref().map(|interval| interval.span),
        ];
        for span in alone.into_iter().flatten() {
            let message = "`kernel_memory`, `sysctl` and `tcp_info` belong to a host with `kernel`";
            let hint = "sysctls that are modelled go into the host's knobs: [host.NAME.knobs]";
            reader.report(SpannedError::new(span, message).hint(hint.to_owned()));
        }
        return;
    };
    if !reader.allows_kernels {
        let message = "a host that is a real kernel cannot be part of this command";
        let hint = "`ackclock run` and `ackclock compare` can run it; without `kernel` the host is modelled";
        reader.report(SpannedError::new(kernel.span, message).hint(hint.to_owned()));
        return;
    }
    let settings = table.sysctl.as_ref().map_or(&[][..], |settings| &settings.value);
    let sysctls = settings.iter().filter_map(|setting| sysctl(setting, reader)).collect();
    let memory = table.kernel_memory.as_ref().map_or(MEMORY, |memory| memory.value);
    let tcp_info = table.tcp_info.as_ref().map_or(TCP_INFO_INTERVAL, |interval| interval.value);
    let kernel = kernel.value.clone();
    reader.kernels.push(KernelHost { host, kernel, memory, sysctls, tcp_info });
}

fn sysctl(
    (name, setting): &(Located<String>, RawValue),
    reader: &mut ScenarioReader,
) -> Option<(String, String)> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if name.value.is_empty() || !name.value.chars().all(allowed) || name.value.contains("..") {
        let message = format!("{:?} cannot be the name of a sysctl", name.value);
        reader.report(SpannedError::new(name.span, message));
        return None;
    }
    let text = match &setting.0.value {
        TomlValue::Text(text) if !text.contains(['\n', '\r']) => text.clone(),
        TomlValue::Integer(digits) => digits.clone(),
        TomlValue::Switch(on) => u32::from(*on).to_string(),
        _ => {
            let message = format!("{} cannot be the value of a sysctl", setting.0.describe());
            reader.report(
                SpannedError::new(setting.0.span, message).expected("text or a whole number"),
            );
            return None;
        }
    };
    Some((name.value.clone(), text))
}
