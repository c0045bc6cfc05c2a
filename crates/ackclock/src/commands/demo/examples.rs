//! Example recordings of findings: short transfers that are run in virtual time, and captures of real hosts.

use diagnose::quic::rules::quic_rule;
use export::capture::PcapngRecorder;
use export::kernel_log::{BlackBox, LoggedEndpoint};
use export::qlog::Qlog;
use logs::qlog::QlogFormat;
use scenario::{Loaded, Overrides, load};

use crate::failure::Failure;

/// A recording that shows a finding.
pub(super) struct FindingExample {
    /// Code of the finding.
    pub(super) code: &'static str,
    source: ExampleSource,
}

/// Where the recording of an example is from.
enum ExampleSource {
    /// A scenario; its recording is what users have of such a transfer.
    Scenario(&'static str),
    /// The same, with the log of the sender's kernel (BBLog).
    KernelLog(&'static str),
    /// A capture of real hosts.
    Capture { title: &'static str, gz: &'static [u8] },
}

macro_rules! example {
    ($code:literal) => {
        example!($code, Scenario)
    };
    ($code:literal, $kind:ident) => {
        FindingExample {
            code: $code,
            source: ExampleSource::$kind(include_str!(concat!(
                "../../../demo/examples/",
                $code,
                ".toml"
            ))),
        }
    };
    ($code:literal, $title:literal) => {
        FindingExample {
            code: $code,
            source: ExampleSource::Capture {
                title: $title,
                gz: include_bytes!(concat!("../../../demo/examples/", $code, ".pcap.gz")),
            },
        }
    };
}

/// All examples, by code.
pub(super) const EXAMPLES: &[FindingExample] = &[
    example!("CC001", "a port on which nothing listens"),
    example!("CC002"),
    example!("CC003"),
    example!("CC004", "connections from a port that the server still holds"),
    example!("CC005", "a router answers with ICMP errors"),
    example!("CC101"),
    example!("CC102"),
    example!("CC103"),
    example!("CC104"),
    example!("CC105"),
    example!("CC201"),
    example!("CC202"),
    example!("CC203"),
    example!("CC204"),
    example!("CC205"),
    example!("CC206"),
    example!("CC301"),
    example!("CC302"),
    example!("CC303"),
    example!("CC401"),
    example!("CC402"),
    example!("CC403"),
    example!("CC501"),
    example!("CC502"),
    example!("CC503"),
    example!("CC504"),
    example!("CC505"),
    example!("CC506"),
    example!("CC601"),
    example!("CC602"),
    example!("CC603"),
    example!("CC701", KernelLog),
    example!("CC801"),
    example!("CC803"),
    example!("CC811"),
    example!("CC812"),
    example!("CC813"),
    example!("CC814"),
    example!("CC821"),
    example!("CC822"),
    example!("CC831"),
    example!("CC832"),
    example!("CC834"),
    example!("CC835"),
    example!("CC837"),
    example!("CC841"),
    example!("CC904"),
    example!("CC905"),
];

/// Codes without an example, and why.
pub(super) const WITHOUT: &[(&[&str], &str)] = &[
    (
        &["CC901", "CC902", "CC903", "CC906"],
        "a note on a capture that lacks packets: those of simulated hosts have all",
    ),
    (&["CC815", "CC836", "CC853"], "a note: it limits no connection"),
    (
        &["CC802", "CC804", "CC851", "CC852"],
        "simulated hosts of QUIC validate no address, close without errors, use no ECN, and send datagrams of one size",
    ),
    (&["CC823"], "simulated peers do not limit the number of streams"),
    (&["CC833"], "simulated windows stay only after a loss, which costs more (CC811)"),
    (&["CC838"], "a note where the log has the windows, as those of simulated hosts have"),
];

/// The example of a finding; `None` without one.
pub(super) fn example(code: &str) -> Option<&'static FindingExample> {
    EXAMPLES.iter().find(|example| example.code.eq_ignore_ascii_case(code))
}

/// Why a finding has no example; `None` if it has one, or is none.
pub(super) fn reason(code: &str) -> Option<&'static str> {
    let has =
        |(codes, _): &&(&[&str], &str)| codes.iter().any(|one| one.eq_ignore_ascii_case(code));
    WITHOUT.iter().find(has).map(|(_, reason)| *reason)
}

impl FindingExample {
    /// Its title.
    pub(super) fn title(&self) -> &'static str {
        match self.source {
            ExampleSource::Capture { title, .. } => title,
            ExampleSource::Scenario(text) | ExampleSource::KernelLog(text) => {
                let line = text.lines().next().unwrap_or_default();
                line.trim_start_matches("title = ").trim_matches('"')
            }
        }
    }

    /// Name of a file for its recording: a capture, of QUIC the sender's qlog, or the log of a kernel.
    pub(super) fn file_name(&self) -> String {
        let ending = match self.source {
            ExampleSource::Capture { .. } => "pcap.gz",
            ExampleSource::KernelLog(_) => "bblog.pcapng",
            ExampleSource::Scenario(_) if self.is_quic() => "qlog",
            ExampleSource::Scenario(_) => "pcap",
        };
        format!("{}.{ending}", self.code)
    }

    fn is_quic(&self) -> bool {
        quic_rule(self.code).is_some()
    }

    /// Runs the scenario, if it has one, and returns the recording.
    pub(super) fn record(&self) -> Result<Vec<u8>, Failure> {
        let (text, has_kernel_log) = match self.source {
            ExampleSource::Capture { gz, .. } => return Ok(gz.to_vec()),
            ExampleSource::Scenario(text) => (text, false),
            ExampleSource::KernelLog(text) => (text, true),
        };
        let name = format!("{}.toml", self.code);
        let Loaded { mut scenario, sha256, .. } =
            load(text, &name, &Overrides::default()).map_err(Failure::Scenario)?;
        let failed = |error: &dyn core::fmt::Display| Failure::new(format!("{name}: {error}"));
        if !self.is_quic() && !has_kernel_log {
            let mut capture = PcapngRecorder::new(&scenario, &[0], "", Vec::new())
                .map_err(|error| failed(&error))?;
            sim::run_shared(&scenario, &mut capture).map_err(|error| failed(&error))?;
            return capture.finish().map_err(|error| failed(&error));
        }
        let sender =
            LoggedEndpoint::sender(&mut scenario, 0).ok_or_else(|| failed(&"it has no flow"))?;
        if has_kernel_log {
            let mut log =
                BlackBox::new(&scenario, sender, "", Vec::new()).map_err(|error| failed(&error))?;
            sim::run_shared(&scenario, &mut log).map_err(|error| failed(&error))?;
            return log.finish().map_err(|error| failed(&error));
        }
        let mut log = Qlog::new(&scenario, sender, &sha256, QlogFormat::Current, Vec::new())
            .map_err(|error| failed(&error))?;
        sim::run_shared(&scenario, &mut log).map_err(|error| failed(&error))?;
        log.finish().map_err(|error| failed(&error))
    }
}
