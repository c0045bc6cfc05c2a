//! Remedies, and which of them concern a connection.
//!
//! A rule lists its remedies for all systems. [`HelpFacts`] are what is known about the hosts and
//! the sender; [`Remedy::fits`] compares both, so that no rule chooses its own help.

use packet::Dir;

/// Largest window without the scale of RFC 7323, in bytes.
pub const MAX_UNSCALED_WINDOW: u64 = 65_535;

/// Where a remedy is applied. The system of that host decides whether it concerns the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemedyHost {
    /// The host that sends the data.
    Sender,
    /// The host that receives them.
    Receiver,
    /// The host that opened the connection.
    Client,
    /// The host that the connection was opened to.
    Server,
    /// The host that the finding names, as the one that sent a reset.
    Named,
    /// The host whose SYN lacks what the remedy switches on.
    Lacking,
    /// A router, a device with a queue or a firewall, the host of the capture: its system is unknown.
    Elsewhere,
}

/// A setting that the capture can show to be in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The congestion controller of the sender, with this name.
    Controller(&'static str),
    /// FreeBSD's RACK stack at the sender.
    RackStack,
    /// Selective acknowledgments, negotiated by the SYNs.
    Sack,
    /// Timestamps, negotiated by the SYNs.
    Timestamps,
    /// Window scaling, negotiated by the SYNs.
    WindowScaling,
    /// Explicit congestion notification, negotiated by the SYNs.
    Ecn,
    /// A default of the system that leaves no trace in packets.
    Default,
}

/// When a remedy is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usefulness {
    /// Always.
    Always,
    /// Unless this is in force.
    Unless(Setting),
    /// If the SYNs do not exclude this.
    IfPossible(Setting),
    /// If a SYN lacks this.
    IfLacking(Setting),
}

/// What to do on a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remedy {
    /// `FreeBSD`, `Linux`, a QUIC stack, or `other`.
    pub system: &'static str,
    /// What to do.
    pub text: &'static str,
    host: RemedyHost,
    /// It does not depend on a system.
    is_general: bool,
    use_: Usefulness,
    /// Of use only if larger windows than the largest one are possible.
    needs_growth: bool,
}

/// The remedies of a rule; those of a system are consecutive.
pub type Help = &'static [Remedy];

impl Remedy {
    const fn of(system: &'static str, host: RemedyHost, text: &'static str) -> Self {
        Self {
            system,
            text,
            host,
            is_general: false,
            use_: Usefulness::Always,
            needs_growth: false,
        }
    }

    /// A remedy on FreeBSD.
    pub(crate) const fn freebsd(host: RemedyHost, text: &'static str) -> Self {
        Self::of("FreeBSD", host, text)
    }

    /// A remedy on Linux.
    pub(crate) const fn linux(host: RemedyHost, text: &'static str) -> Self {
        Self::of("Linux", host, text)
    }

    /// A remedy on systems without an entry of their own.
    pub(crate) const fn other(host: RemedyHost, text: &'static str) -> Self {
        Self::of("other", host, text)
    }

    /// A remedy in a QUIC stack.
    pub(crate) const fn stack(host: RemedyHost, stack: &'static str, text: &'static str) -> Self {
        Self::of(stack, host, text)
    }

    /// A remedy whatever the systems are.
    pub(crate) const fn general(text: &'static str) -> Self {
        Self { is_general: true, ..Self::of("other", RemedyHost::Elsewhere, text) }
    }

    /// The same, but of no use where the setting is in force.
    pub(crate) const fn unless(self, setting: Setting) -> Self {
        Self { use_: Usefulness::Unless(setting), ..self }
    }

    /// The same, but of no use where the SYNs exclude the setting.
    pub(crate) const fn if_possible(self, setting: Setting) -> Self {
        Self { use_: Usefulness::IfPossible(setting), ..self }
    }

    /// The same, but of use only where a captured SYN lacks the setting.
    pub(crate) const fn if_lacking(self, setting: Setting) -> Self {
        Self { use_: Usefulness::IfLacking(setting), ..self }
    }

    /// The same, but of no use where the SYNs do not permit a larger window.
    pub(crate) const fn if_window_can_grow(self) -> Self {
        Self { needs_growth: true, ..self }
    }

    /// Label in texts.
    pub const fn label(&self) -> &'static str {
        if self.is_general { "general" } else { self.system }
    }

    /// How it concerns a connection with these facts.
    fn fits(&self, facts: &HelpFacts, named: Option<Dir>) -> RemedyFit {
        let host = match (self.host, self.use_) {
            (RemedyHost::Sender, _) => Some(facts.dir),
            (RemedyHost::Receiver, _) => Some(facts.dir.reversed()),
            (RemedyHost::Client, _) => Some(Dir::Forward),
            (RemedyHost::Server, _) => Some(Dir::Reverse),
            (RemedyHost::Named, _) => named,
            (RemedyHost::Lacking, Usefulness::Unless(setting) | Usefulness::IfLacking(setting)) => {
                facts.lacking(setting)
            }
            (RemedyHost::Lacking | RemedyHost::Elsewhere, _) => None,
        };
        let known = host.and_then(|host| facts.systems[host as usize]);
        let is_own = known.is_none_or(|system| system == self.system);
        let is_of_use = match self.use_ {
            // Something between the hosts did it.
            Usefulness::Always => self.host != RemedyHost::Named || named.is_some(),
            // FreeBSD does not give a connection without SACK to it (rack_handoff_ok).
            Usefulness::Unless(Setting::RackStack) if facts.lacking(Setting::Sack).is_some() => {
                false
            }
            // Only of a known system the defaults are known.
            Usefulness::Unless(Setting::Default) => known.is_none(),
            Usefulness::Unless(setting) => !facts.is_in_force(setting),
            Usefulness::IfPossible(setting) => facts.lacking(setting).is_none(),
            Usefulness::IfLacking(setting) => facts.lacking(setting).is_some(),
        };
        let is_of_use = is_of_use && (facts.window_can_grow || !self.needs_growth);
        match (is_of_use, is_own) {
            (false, _) => RemedyFit::OfNoUse,
            (true, true) => RemedyFit::Applies,
            (true, false) => RemedyFit::OtherSystem,
        }
    }
}

/// Remedies of losses that are repaired without SACK.
pub(crate) const SACK_ON_FREEBSD: Remedy = Remedy::freebsd(
    RemedyHost::Lacking,
    "SACK, which a SYN lacks: net.inet.tcp.sack.enable=1 (default)",
)
.if_lacking(Setting::Sack);
/// See [`SACK_ON_FREEBSD`].
pub(crate) const SACK_ON_LINUX: Remedy =
    Remedy::linux(RemedyHost::Lacking, "SACK, which a SYN lacks: net.ipv4.tcp_sack=1 (default)")
        .if_lacking(Setting::Sack);

/// How a remedy concerns a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemedyFit {
    /// It applies, as far as is known.
    Applies,
    /// It is one of another system.
    OtherSystem,
    /// It is in force, or cannot help.
    OfNoUse,
}

/// What is known about the hosts of a connection, and in force there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelpFacts {
    /// Names of the hosts' systems, by [`Dir`], as in [`Remedy::system`]; `None` if unknown.
    pub systems: [Option<&'static str>; 2],
    /// Direction of the data.
    pub dir: Dir,
    /// Congestion controller of the sender.
    pub controller: Option<&'static str>,
    /// The sender has FreeBSD's RACK stack.
    pub rack_stack: bool,
    /// Whether each host's SYN permits SACK, timestamps, window scaling and ECN; `None` without its SYN.
    pub permits: [Option<[bool; 4]>; 2],
    /// The SYNs permit a larger window than the largest one.
    pub window_can_grow: bool,
}

impl Default for HelpFacts {
    fn default() -> Self {
        Self {
            systems: [None; 2],
            dir: Dir::Forward,
            controller: None,
            rack_stack: false,
            permits: [None; 2],
            window_can_grow: true,
        }
    }
}

impl HelpFacts {
    /// Whether a host's SYN permits the setting; `None` for those that are not negotiated.
    fn permits(&self, host: Dir, setting: Setting) -> Option<bool> {
        let [sack, timestamps, scaling, ecn] = self.permits[host as usize]?;
        match setting {
            Setting::Sack => Some(sack),
            Setting::Timestamps => Some(timestamps),
            Setting::WindowScaling => Some(scaling),
            Setting::Ecn => Some(ecn),
            Setting::Controller(_) | Setting::RackStack | Setting::Default => None,
        }
    }

    fn is_in_force(&self, setting: Setting) -> bool {
        match setting {
            Setting::Controller(name) => self.controller == Some(name),
            Setting::RackStack => self.rack_stack,
            Setting::Default => false,
            Setting::Sack | Setting::Timestamps | Setting::WindowScaling | Setting::Ecn => {
                let permits = |host| self.permits(host, setting) == Some(true);
                permits(Dir::Forward) && permits(Dir::Reverse)
            }
        }
    }

    /// The first host whose SYN does not permit the setting: a server answers only what was offered.
    fn lacking(&self, setting: Setting) -> Option<Dir> {
        let lacks = |host: &Dir| self.permits(*host, setting) == Some(false);
        [Dir::Forward, Dir::Reverse].into_iter().find(lacks)
    }
}

/// The remedies of a finding, and which of them concern the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingHelp {
    /// All remedies.
    pub all: Help,
    /// Bits of those that apply, and of those of other systems.
    applies: u32,
    others: u32,
}

impl FindingHelp {
    /// All remedies of a rule, none of them chosen.
    pub(crate) const fn of(all: Help) -> Self {
        Self { all, applies: u32::MAX, others: 0 }
    }

    /// Chooses by what is known; `named` is the host that the finding names.
    pub(super) fn choose(&mut self, facts: &HelpFacts, named: Option<Dir>) {
        let bits = |fit: RemedyFit| {
            let fitting = self.all.iter().enumerate();
            let fitting = fitting.filter(|(_, remedy)| remedy.fits(facts, named) == fit);
            fitting.fold(0, |set, (index, _)| set | 1 << index)
        };
        (self.applies, self.others) = (bits(RemedyFit::Applies), bits(RemedyFit::OtherSystem));
    }

    /// The remedies that apply, as far as is known, by label.
    pub fn applicable(&self) -> Vec<(&'static str, String)> {
        let all = self.all.iter().enumerate();
        let applies = all.filter(|(index, _)| self.applies & 1 << index != 0);
        joined(applies.map(|(_, remedy)| (remedy.label(), remedy.text)))
    }

    /// The remedies that apply, as far as is known, by system.
    pub fn applicable_by_system(&self) -> Vec<(&'static str, String)> {
        let all = self.all.iter().enumerate();
        let applies = all.filter(|(index, _)| self.applies & 1 << index != 0);
        joined(applies.map(|(_, remedy)| (remedy.system, remedy.text)))
    }

    /// Whether there are remedies of other systems than those of the hosts.
    pub const fn has_others(&self) -> bool {
        self.others != 0
    }
}

/// All remedies of a rule by system.
pub fn help_by_system(help: Help) -> Vec<(&'static str, String)> {
    joined(help.iter().map(|remedy| (remedy.system, remedy.text)))
}

/// Joins consecutive remedies of one system.
fn joined(
    remedies: impl Iterator<Item = (&'static str, &'static str)>,
) -> Vec<(&'static str, String)> {
    let mut systems: Vec<(&str, String)> = Vec::new();
    for (system, what) in remedies {
        match systems.last_mut() {
            Some((last, text)) if *last == system => {
                text.push_str("; ");
                text.push_str(what);
            }
            _ => systems.push((system, what.to_owned())),
        }
    }
    systems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::rules::QUIC_RULES;
    use crate::rules::RULES;

    const HELP: Help = &[
        Remedy::freebsd(RemedyHost::Sender, "f.cubic").unless(Setting::Controller("cubic")),
        Remedy::linux(RemedyHost::Sender, "l.cubic").unless(Setting::Controller("cubic")),
        Remedy::linux(RemedyHost::Sender, "l.default").unless(Setting::Default),
        Remedy::linux(RemedyHost::Receiver, "l.buffer").if_window_can_grow(),
        Remedy::linux(RemedyHost::Lacking, "l.scaling").unless(Setting::WindowScaling),
        Remedy::other(RemedyHost::Sender, "o"),
        Remedy::general("g"),
    ];

    fn chosen(facts: HelpFacts) -> (Vec<String>, bool) {
        let mut help = FindingHelp::of(HELP);
        help.choose(&facts, None);
        let text = |(label, text): (&str, String)| format!("{label}: {text}");
        (help.applicable().into_iter().map(text).collect(), help.has_others())
    }

    #[test]
    fn without_facts_all_remedies_apply() {
        let (all, others) = chosen(HelpFacts::default());
        let linux = "Linux: l.cubic; l.default; l.buffer; l.scaling";
        assert_eq!(all, ["FreeBSD: f.cubic", linux, "other: o", "general: g"]);
        assert!(!others);
    }

    #[test]
    fn each_host_has_the_remedies_of_its_system_that_are_not_in_force() {
        let both = Some([true; 4]);
        let facts = HelpFacts {
            systems: [Some("Linux"), Some("FreeBSD")],
            controller: Some("cubic"),
            permits: [both; 2],
            ..HelpFacts::default()
        };
        assert_eq!(chosen(facts), (vec!["general: g".to_owned()], true));
        let facts = HelpFacts { dir: Dir::Reverse, controller: Some("newreno"), ..facts };
        let expected = ["FreeBSD: f.cubic", "Linux: l.buffer", "general: g"];
        assert_eq!(chosen(facts), (expected.map(str::to_owned).to_vec(), true));
    }

    #[test]
    fn what_the_syns_do_not_permit_is_switched_on_at_the_host_that_lacks_it() {
        let facts = HelpFacts {
            systems: [Some("Linux"), Some("FreeBSD")],
            permits: [Some([true, true, false, true]), Some([true, true, false, true])],
            window_can_grow: false,
            dir: Dir::Reverse,
            ..HelpFacts::default()
        };
        let expected = ["FreeBSD: f.cubic", "Linux: l.scaling", "general: g"];
        assert_eq!(chosen(facts).0, expected);
        let lacking = HelpFacts { permits: [Some([true; 4]), Some([false; 4])], ..facts };
        assert_eq!(chosen(lacking).0, ["FreeBSD: f.cubic", "general: g"]);
    }

    #[test]
    fn no_help_turns_on_what_is_on_or_needs_what_is_off() {
        const LOSS: Help = &[
            Remedy::freebsd(RemedyHost::Sender, "rack").unless(Setting::RackStack),
            SACK_ON_LINUX,
            Remedy::other(RemedyHost::Sender, "rack-tlp").if_possible(Setting::Sack),
            Remedy::general("ecn").unless(Setting::Ecn),
        ];
        let texts = |permits| {
            let mut help = FindingHelp::of(LOSS);
            help.choose(&HelpFacts { permits, ..HelpFacts::default() }, None);
            help.applicable().into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        let all = Some([true; 4]);
        assert_eq!(texts([None; 2]), ["rack", "rack-tlp", "ecn"]);
        assert_eq!(texts([all; 2]), ["rack", "rack-tlp"]);
        let without = Some([false, true, true, false]);
        assert_eq!(texts([all, without]), [SACK_ON_LINUX.text, "ecn"]);
        // A server answers only what was offered; its SYN-ACK need not be there.
        assert_eq!(texts([without, None]), [SACK_ON_LINUX.text, "ecn"]);
    }

    #[test]
    fn remedies_of_a_system_are_consecutive() {
        let all = RULES.iter().map(|rule| (rule.code, rule.help));
        for (code, help) in all.chain(QUIC_RULES.iter().map(|rule| (rule.code, rule.help))) {
            let mut systems: Vec<_> = help_by_system(help).iter().map(|one| one.0).collect();
            let all = systems.len();
            systems.sort_unstable();
            systems.dedup();
            assert_eq!(systems.len(), all, "{code}");
            assert!(help.len() <= 32, "{code}");
            // Stacks of QUIC have no entry for others where each has its own option.
            let is_tcp = !code.starts_with("CC8");
            assert!(!is_tcp || systems == ["FreeBSD", "Linux", "other"], "{code}");
        }
    }
}
