//! The senders of a suite: a profile with its congestion control.

use core::fmt;

use std::path::Path;

use cc::ExternalAlgorithm;
use runner::user_controllers;
use scenario::{Overrides, load, nearest, not_modelled};

/// The stack and congestion control of a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteSender {
    /// Profile of the host.
    pub profile: String,
    /// Congestion control.
    pub cc: String,
    /// Further knobs of the sending host: names and values, as in the table `knobs` of a scenario.
    pub knobs: Vec<(String, String)>,
    /// The controller, if it is not built in; `cc` is its name.
    pub controller: Option<ExternalAlgorithm>,
}

/// Error: no such sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderError {
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: String,
}

impl fmt::Display for SenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl core::error::Error for SenderError {}

/// Profiles that a congestion control given alone belongs to.
const HOME: [(&str, &str); 5] = [
    ("reno", "linux-6.18"),
    ("cubic", "linux-6.18"),
    ("bbr", "linux-6.18"),
    ("bbr3", "linux-6.18"),
    ("newreno", "freebsd-main"),
];

/// The stack of a controller of the user.
const USER_PROFILE: &str = "linux-6.18";

impl SuiteSender {
    /// Reads `PROFILE/CC`, or `CC` alone for `reno`, `cubic`, `bbr` and `bbr3` (Linux) and `newreno`
    /// (FreeBSD).
    ///
    /// # Errors
    /// The profile or the congestion control does not exist, or the profile does not have it.
    pub fn read(text: &str) -> Result<Self, SenderError> {
        let (profile, cc) = match text.split_once('/') {
            Some((profile, cc)) => (profile, cc),
            None => match HOME.iter().find(|(cc, _)| *cc == text) {
                Some((cc, profile)) => (*profile, *cc),
                None => return Err(Self::unknown(text)),
            },
        };
        let (profile, cc) = (profile.to_owned(), cc.to_owned());
        Self { profile, cc, knobs: Vec::new(), controller: None }.checked()
    }

    /// A sender whose controller is not built in.
    ///
    /// # Errors
    /// There is no such profile, or it cannot have a controller of the user's.
    pub fn external(profile: &str, controller: ExternalAlgorithm) -> Result<Self, SenderError> {
        let (profile, cc) = (profile.to_owned(), controller.name().to_owned());
        Self { profile, cc, knobs: Vec::new(), controller: Some(controller) }.checked()
    }

    /// As [`SuiteSender::read`], and a controller of the user: a class in Python, `FILE.py:CLASS`, or a library,
    /// `FILE.so`, with a profile before it or on Linux's stack.
    ///
    /// # Errors
    /// Those of [`SuiteSender::read`]; the file cannot be executed or the class is no controller.
    pub fn read_any(text: &str) -> Result<Self, SenderError> {
        let is_profile = |name: &str| Self::read(&format!("{name}/cubic")).is_ok();
        let (profile, class) = match text.split_once('/') {
            // A directory may have the name of a profile: then the file in it is meant.
            Some((name, rest)) if is_profile(name) && !Path::new(name).is_dir() => (name, rest),
            _ => (USER_PROFILE, text),
        };
        if foreign_cc::named::library_file(class).is_some() {
            let library =
                foreign_cc::named::controller(class, Path::new("")).map_err(|message| {
                    let hint = "`ackclock cc build` makes a library of a C file".to_owned();
                    SenderError { message, hint }
                })?;
            return Self::external(profile, library);
        }
        let Some((file, name)) = user_controllers::python_class(class) else {
            return Self::read(text);
        };
        let controller = user_controllers::python_controller(class, &file, name);
        let controller = controller.map_err(|error| SenderError {
            message: error.0,
            hint: "docs/adding-a-controller.md has a controller of ten lines".to_owned(),
        })?;
        Self::external(profile, controller)
    }

    fn checked(self) -> Result<Self, SenderError> {
        let Self { profile, cc, .. } = &self;
        self.check().map_err(|(message, hint)| SenderError {
            message: format!("`{profile}/{cc}` is not a sender: {message}"),
            hint: hint.unwrap_or_else(|| {
                "`ackclock scenario profiles` lists the profiles with their congestion control"
                    .to_owned()
            }),
        })?;
        Ok(self)
    }

    /// Reno and CUBIC of the same stack: the references of a suite, unless others are named.
    pub fn references(&self) -> Vec<Self> {
        let of = |cc: &str| {
            let (profile, cc) = (self.profile.clone(), cc.to_owned());
            let sender = Self { profile, cc, knobs: Vec::new(), controller: None };
            sender.check().is_ok().then_some(sender)
        };
        // FreeBSD's own Reno is called `newreno`; every profile reads both names.
        let reno = if self.profile.starts_with("linux") { "reno" } else { "newreno" };
        [reno, "cubic"].into_iter().filter_map(of).collect()
    }

    /// What a scenario with this sender needs beside its text.
    pub fn overrides(&self) -> Overrides {
        Overrides { controllers: self.controller.into_iter().collect(), ..Overrides::default() }
    }

    /// The sender with ECN, where its system has a knob for it; receivers accept it by default.
    pub(crate) fn with_ecn(&self) -> Self {
        let knob = match self.profile.as_str() {
            name if name.starts_with("linux") => "net.ipv4.tcp_ecn",
            name if name.starts_with("freebsd") => "net.inet.tcp.ecn.enable",
            _ => return self.clone(),
        };
        let mut sender = self.clone();
        if !sender.knobs.iter().any(|(name, _)| name == knob) {
            sender.knobs.push((knob.to_owned(), "1".to_owned()));
        }
        sender
    }

    /// The sender with another value of a knob of its host: `NAME=VALUE`.
    ///
    /// # Errors
    /// The text is not of this form, or the profile has no such knob or not this value of it.
    pub fn with_knob(mut self, text: &str) -> Result<Self, SenderError> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(SenderError {
                message: format!("`{text}` is not a knob"),
                hint: "write NAME=VALUE, such as net.inet.tcp.cc.newreno.beta=80".to_owned(),
            });
        };
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        self.knobs.retain(|(former, _)| *former != name);
        self.knobs.push((name, value));
        match self.check() {
            Ok(()) => Ok(self),
            Err((message, hint)) => Err(SenderError {
                message: format!("knob `{text}`: {message}"),
                hint: hint.unwrap_or_else(|| {
                    "`ackclock scenario keys` lists the knobs of each system".to_owned()
                }),
            }),
        }
    }

    /// Whether a scenario may have this sender: the reader of scenarios knows which profile has which
    /// congestion control and which knobs. The error has the reader's message and hint.
    fn check(&self) -> Result<(), (String, Option<String>)> {
        let text = format!(
            "{}[[path]]\nfrom = \"a\"\nto = \"b\"\nforward = []\nreturn = []\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"1B\"\n",
            self.hosts("a", "b", None)
        );
        match load(&text, "sender", &self.overrides()) {
            Ok(_) => Ok(()),
            Err(errors) => Err(errors
                .into_iter()
                .next()
                .map_or_else(Default::default, |error| (error.message, error.hint))),
        }
    }

    fn unknown(text: &str) -> SenderError {
        let homes = || HOME.iter().map(|(cc, _)| *cc);
        if not_modelled::is_congestion_control(text) {
            let modelled = || format!("modelled are {}", homes().collect::<Vec<_>>().join(", "));
            return SenderError {
                message: format!("`{text}` is not modelled"),
                hint: not_modelled::congestion_control(text).map_or_else(modelled, str::to_owned),
            };
        }
        let hint = match nearest(text, homes()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let named = |profile: &str| Self {
                    profile: profile.to_owned(),
                    cc: text.to_owned(),
                    knobs: Vec::new(),
                    controller: None,
                };
                // Variants of CUBIC, and BBR of the draft.
                let has_it = |profile: &&str| named(profile).check().is_ok();
                let profile = ["freebsd-main", "quic-rfc9002"].into_iter().find(has_it);
                let (profile, cc) =
                    profile.map_or(("freebsd-main", "newreno"), |profile| (profile, text));
                format!("write `PROFILE/CC`, such as `{profile}/{cc}`")
            }
        };
        SenderError { message: format!("unknown sender `{text}`"), hint }
    }

    /// True for a sender of QUIC.
    pub fn is_quic(&self) -> bool {
        let name = self.profile.as_str();
        quic::profile::NAMES.contains(&name) || quic::real::NAMES.contains(&name)
    }

    /// The tables of a sending and a receiving host with these names. The buffers are as large as
    /// the worlds of the suites need.
    pub(crate) fn hosts(&self, from: &str, to: &str, mtu: Option<u32>) -> String {
        let mtu = mtu.map_or_else(String::new, |mtu| format!("mtu = \"{mtu}B\"\n"));
        let knobs = buffer_knobs(&self.profile);
        let tso = if self.is_quic() { "" } else { "tso = true\n" };
        format!(
            "[host.{from}]\nprofile = {:?}\ncc = {:?}\n{tso}{mtu}{}\n\
             [host.{to}]\nprofile = {:?}\n{mtu}{knobs}\n",
            self.profile,
            self.cc,
            self.knobs(),
            self.profile
        )
    }

    /// The key `knobs` of the sending host, with a line break; empty if it needs none. Its buffers are
    /// as large as the worlds of suites need, unless a knob of its own sets them.
    pub fn knobs(&self) -> String {
        let of_user = |name: &str| self.knobs.iter().any(|(own, _)| own == name);
        let buffers = buffers(&self.profile).iter().filter(|(name, _)| !of_user(name));
        let mut entries: Vec<String> =
            buffers.map(|(name, value)| format!("{name:?} = {value}")).collect();
        entries.extend(self.knobs.iter().map(|(name, value)| {
            let bare = value.parse::<i64>().is_ok() || value.starts_with('[');
            if bare { format!("{name:?} = {value}") } else { format!("{name:?} = {value:?}") }
        }));
        knob_table(&entries)
    }

    /// True if the system has a receive offload: LRO or GRO.
    pub fn has_receive_offload(&self) -> bool {
        self.profile.starts_with("freebsd") || self.profile.starts_with("linux")
    }
}

/// Socket buffers that are large enough for the worlds of suites: knobs and values of a scenario.
fn buffers(profile: &str) -> &'static [(&'static str, &'static str)] {
    if profile.starts_with("linux") {
        &[
            ("net.ipv4.tcp_rmem", "[\"4KiB\", \"128KiB\", \"64MiB\"]"),
            ("net.ipv4.tcp_wmem", "[\"4KiB\", \"16KiB\", \"64MiB\"]"),
        ]
    } else if profile.starts_with("freebsd") {
        &[
            ("kern.ipc.maxsockbuf", "\"64MiB\""),
            ("net.inet.tcp.sendbuf_max", "\"32MiB\""),
            ("net.inet.tcp.recvbuf_max", "\"32MiB\""),
        ]
    } else {
        &[]
    }
}

/// The key `knobs` with these entries and a line break; empty without entries.
fn knob_table(entries: &[String]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    format!("knobs = {{ {} }}\n", entries.join(", "))
}

/// The key of a host with this profile that makes its socket buffers large enough for the worlds of
/// suites, with a line break; empty if the profile needs none.
pub fn buffer_knobs(profile: &str) -> String {
    let entries = buffers(profile).iter().map(|(name, value)| format!("{name:?} = {value}"));
    knob_table(&entries.collect::<Vec<_>>())
}

impl fmt::Display for SuiteSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.profile, self.cc)?;
        self.knobs.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}
