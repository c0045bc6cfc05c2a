//! The senders of a suite: a profile with its congestion control.

use core::fmt;

use scenario::{Overrides, load, nearest};

/// The stack and congestion control of a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteSender {
    /// Profile of the host.
    pub profile: String,
    /// Congestion control.
    pub cc: String,
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
const HOME: [(&str, &str); 4] = [
    ("reno", "linux-6.18"),
    ("cubic", "linux-6.18"),
    ("bbr", "linux-6.18"),
    ("newreno", "freebsd-main"),
];

impl SuiteSender {
    /// Reads `PROFILE/CC`, or `CC` alone for `reno`, `cubic` and `bbr` (Linux) and `newreno`
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
        let sender = Self { profile: profile.to_owned(), cc: cc.to_owned() };
        // The reader of scenarios knows which profile has which congestion control.
        let text = format!(
            "[host.a]\nprofile = {profile:?}\ncc = {cc:?}\n[host.b]\nprofile = {profile:?}\n\
             [[path]]\nfrom = \"a\"\nto = \"b\"\nforward = []\nreturn = []\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"1B\"\n"
        );
        match load(&text, "sender", &Overrides::default()) {
            Ok(_) => Ok(sender),
            Err(errors) => {
                let message =
                    errors.first().map_or_else(String::new, |error| error.message.clone());
                Err(SenderError {
                    message: format!("`{profile}/{cc}` is not a sender: {message}"),
                    hint: "`ackclock scenario profiles` lists the profiles with their congestion \
                           control"
                        .to_owned(),
                })
            }
        }
    }

    fn unknown(text: &str) -> SenderError {
        let names = HOME.iter().map(|(cc, _)| *cc);
        let hint = match nearest(text, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write `PROFILE/CC`, such as `freebsd-main/{text}`"),
        };
        SenderError { message: format!("unknown sender `{text}`"), hint }
    }

    /// True for a sender of QUIC.
    pub fn is_quic(&self) -> bool {
        self.profile.starts_with("quic")
    }

    /// The tables of a sending and a receiving host with these names. The buffers are as large as
    /// the worlds of the suites need.
    pub(crate) fn hosts(&self, from: &str, to: &str, mtu: Option<u32>) -> String {
        let mtu = mtu.map_or_else(String::new, |mtu| format!("mtu = \"{mtu}B\"\n"));
        let knobs = buffer_knobs(&self.profile);
        let tso = if self.is_quic() { "" } else { "tso = true\n" };
        format!(
            "[host.{from}]\nprofile = {:?}\ncc = {:?}\n{tso}{mtu}{knobs}\n\
             [host.{to}]\nprofile = {:?}\n{mtu}{knobs}\n",
            self.profile, self.cc, self.profile
        )
    }

    /// True if the system has a receive offload: LRO or GRO.
    pub fn has_receive_offload(&self) -> bool {
        self.profile.starts_with("freebsd") || self.profile.starts_with("linux")
    }
}

/// The key of a host with this profile that makes its socket buffers large enough for the worlds of
/// suites, with a line break; empty if the profile needs none.
pub fn buffer_knobs(profile: &str) -> &'static str {
    if profile.starts_with("linux") {
        "knobs = { \"net.ipv4.tcp_rmem\" = [\"4KiB\", \"128KiB\", \"64MiB\"], \
         \"net.ipv4.tcp_wmem\" = [\"4KiB\", \"16KiB\", \"64MiB\"] }\n"
    } else if profile.starts_with("freebsd") {
        "knobs = { \"kern.ipc.maxsockbuf\" = \"64MiB\", \"net.inet.tcp.sendbuf_max\" = \"32MiB\", \
         \"net.inet.tcp.recvbuf_max\" = \"32MiB\" }\n"
    } else {
        ""
    }
}

impl fmt::Display for SuiteSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.profile, self.cc)
    }
}
