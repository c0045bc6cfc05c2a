//! Example recordings of findings: short transfers that are run in virtual time.

use diagnose::quic::rules::quic_rule;
use export::capture::PcapngRecorder;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use logs::qlog::QlogFormat;
use scenario::{Loaded, Overrides, load};

use crate::failure::Failure;

/// A scenario whose recording has a finding as its primary one.
pub(super) struct FindingExample {
    /// Code of the finding.
    pub(super) code: &'static str,
    text: &'static str,
}

macro_rules! example {
    ($code:literal) => {
        FindingExample {
            code: $code,
            text: include_str!(concat!("../../../demo/examples/", $code, ".toml")),
        }
    };
}

/// All examples, by code.
pub(super) const EXAMPLES: &[FindingExample] = &[
    example!("CC002"),
    example!("CC003"),
    example!("CC101"),
    example!("CC102"),
    example!("CC103"),
    example!("CC105"),
    example!("CC201"),
    example!("CC202"),
    example!("CC203"),
    example!("CC204"),
    example!("CC205"),
    example!("CC206"),
    example!("CC302"),
    example!("CC303"),
    example!("CC401"),
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
    example!("CC801"),
    example!("CC803"),
    example!("CC811"),
    example!("CC812"),
    example!("CC813"),
    example!("CC814"),
    example!("CC821"),
    example!("CC822"),
    example!("CC831"),
    example!("CC834"),
    example!("CC835"),
    example!("CC841"),
];

/// Codes without an example, and why.
pub(super) const WITHOUT: &[(&[&str], &str)] = &[
    (
        &["CC001", "CC004"],
        "hosts of scenarios listen, and reuse no port: golden/captures/recorded/failures has captures",
    ),
    (
        &["CC005"],
        "simulated routers report only packets that are too large: golden/captures/recorded/failures has captures",
    ),
    (
        &["CC104"],
        "in simulated transfers whose slow start ends early, slow start itself costs more (CC102)",
    ),
    (
        &[
            "CC301", "CC402", "CC815", "CC836", "CC837", "CC853", "CC901", "CC902", "CC903",
            "CC904", "CC905", "CC906",
        ],
        "a note: it limits no connection",
    ),
    (&["CC701"], "needs the kernel's own log beside the capture (BBLog)"),
    (
        &["CC802", "CC804", "CC851", "CC852"],
        "simulated hosts of QUIC validate no address, close without errors, use no ECN, and send datagrams of one size",
    ),
    (&["CC823"], "simulated peers do not limit the number of streams"),
    (&["CC832"], "simulated pacers allow a window per round trip or more"),
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
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches("title = ").trim_matches('"')
    }

    /// Name of a file for its recording: a capture, or of QUIC the sender's qlog.
    pub(super) fn file_name(&self) -> String {
        let ending = if self.is_quic() { "qlog" } else { "pcap" };
        format!("{}.{ending}", self.code)
    }

    fn is_quic(&self) -> bool {
        quic_rule(self.code).is_some()
    }

    /// Runs the scenario and returns its recording.
    pub(super) fn record(&self) -> Result<Vec<u8>, Failure> {
        let name = format!("{}.toml", self.code);
        let Loaded { mut scenario, sha256, .. } =
            load(self.text, &name, &Overrides::default()).map_err(Failure::Scenario)?;
        let failed = |error: &dyn core::fmt::Display| Failure::new(format!("{name}: {error}"));
        if !self.is_quic() {
            let mut capture = PcapngRecorder::new(&scenario, &[0], "", Vec::new())
                .map_err(|error| failed(&error))?;
            sim::run_shared(&scenario, &mut capture).map_err(|error| failed(&error))?;
            return capture.finish().map_err(|error| failed(&error));
        }
        let sender =
            LoggedEndpoint::sender(&mut scenario, 0).ok_or_else(|| failed(&"it has no flow"))?;
        let mut log = Qlog::new(&scenario, sender, &sha256, QlogFormat::Current, Vec::new())
            .map_err(|error| failed(&error))?;
        sim::run_shared(&scenario, &mut log).map_err(|error| failed(&error))?;
        log.finish().map_err(|error| failed(&error))
    }
}
