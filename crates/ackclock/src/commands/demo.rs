//! `ackclock demo`: a diagnosis and its cure, with a capture that the program has in it; of a finding an example.

mod examples;

use core::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use diagnose::AnalysisSettings;
use ingest::diagnosis::{DiagnosisReport, TextStyle};
use ingest::inputs::{self, InputFile, ReadMode};
use runner::stop::NEVER;
use runner::workers::Workers;
use scenario::ReportStyle;
use whatif::{WhatIf, WhatIfRequest};

use super::explain::with_letters;
use crate::cli::DemoArgs;
use crate::failure::{Failure, look_on};
use crate::output::{self, OutFile, print};
use crate::threads::threads;
use crate::visible::ShownPath as _;

use examples::{EXAMPLES, FindingExample, WITHOUT};

/// A transfer between two real Linux kernels, taken at its sender; the receiver's window is small
/// (`golden/linux/h1_rwnd_cubic`).
const CAPTURE: &[u8] = include_bytes!("../../demo/sender.pcap.xz");
/// Its name in messages and in commands for the reader.
const NAME: &str = "demo.pcap.xz";
/// The cure that the diagnosis names: Linux' own default of the receive buffer.
const CURE: &str = "net.ipv4.tcp_rmem=\"4096 131072 6291456\"";

pub(super) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    match (&args.code, &args.save) {
        (None, None) if args.list => print(&list()),
        (None, None) => tour(),
        (None, Some(path)) => save(path, CAPTURE, "the capture of the demo"),
        (Some(code), save_as) => {
            let example = named(code)?;
            let recording = example.record()?;
            match save_as {
                Some(path) => save(path, &recording, example.title()),
                None => show(example, &recording),
            }
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The codes with an example, and those without.
fn list() -> String {
    let mut out = String::new();
    for example in EXAMPLES {
        let _ = writeln!(out, "{}  {}", example.code, example.title());
    }
    out.push_str("\nwithout an example\n");
    for (codes, reason) in WITHOUT {
        let _ = writeln!(out, "{}: {reason}", codes.join(" "));
    }
    out
}

/// The example of a code, with or without its letters.
fn named(code: &str) -> Result<&'static FindingExample, Failure> {
    let code = with_letters(code).to_ascii_uppercase();
    examples::example(&code).ok_or_else(|| {
        let failure = match examples::reason(&code) {
            Some(reason) => Failure::new(format!("{code} has no example: {reason}")),
            None => Failure::new(format!("unknown finding {code}")),
        };
        failure.hint("examples are listed by: ackclock demo --list")
    })
}

fn save(path: &Path, bytes: &[u8], what: &str) -> Result<(), Failure> {
    let mut out = OutFile::create(path)?;
    io::Write::write_all(&mut out, bytes).map_err(|error| Failure::file("write", path, &error))?;
    out.commit()?;
    let name = path.shown();
    print(&format!("{name}: {what}; next: ackclock diagnose {name}\n"))
}

/// The diagnosis of an example.
fn show(example: &FindingExample, recording: &[u8]) -> Result<(), Failure> {
    let name = example.file_name();
    print(&format!(
        "example: {}; ackclock demo {} --save {name}\n\n",
        example.title(),
        example.code
    ))?;
    diagnosis(&name, recording)
}

fn tour() -> Result<(), Failure> {
    print(
        "A copy of 4 MB takes 3.3 s on a path that carries 94 Mbit/s. Its capture is in this program.\n\n",
    )?;
    step("ackclock diagnose demo.pcap.xz")?;
    diagnosis(NAME, CAPTURE)?;
    print("\n")?;
    step(&format!("ackclock whatif demo.pcap.xz --set '{CURE}'"))?;
    print(&answer()?)?;
    print(
        "\nSo the receiver's buffer is the cause, and the default size of Linux cures it.\n\n\
         Next:\n  \
           ackclock demo --save demo.pcap.xz     the capture, to try these commands yourself\n  \
           ackclock slow.pcap                    the same for a capture of your own\n  \
           ackclock explain CC401                the background of the finding\n",
    )
}

fn step(command: &str) -> Result<(), Failure> {
    print(&format!("$ {command}\n"))
}

fn source<'b>(name: &str, bytes: &'b [u8]) -> InputFile<'b> {
    InputFile { name: name.to_owned(), bytes: Box::new(bytes) }
}

fn diagnosis(name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let mode = ReadMode { keeps_quic: true, ..ReadMode::default() };
    let mut report =
        DiagnosisReport::read_with(vec![source(name, bytes)], whatif::MOST_PACKETS, mode)
            .map_err(|error| Failure::new(format!("cannot diagnose {error}")))?;
    whatif::try_worst(&mut report, &Workers::new(threads(None), &NEVER));
    let look = look_on(io::stdout().is_terminal());
    let text = report.text(TextStyle { limit: 1, look });
    match look {
        ReportStyle::Plain => print(&text),
        ReportStyle::Coloured => output::print_in_colour(&text),
    }
}

/// The answer of `whatif` to the cure.
fn answer() -> Result<String, Failure> {
    let settings = AnalysisSettings { packets: usize::MAX, turns: whatif::MAX_EVENTS };
    let reading = inputs::read(vec![source(NAME, CAPTURE)], settings)
        .map_err(|error| Failure::new(format!("cannot read {error}")))?;
    let stream = reading.streams.first().ok_or_else(|| Failure::new("no connection"))?;
    let workers = Workers::new(threads(None), &NEVER);
    let request = WhatIfRequest { set: vec![CURE.to_owned()], ..WhatIfRequest::default() };
    let answer = WhatIf::on(stream, &[], &request, &workers, None);
    answer.map(|answer| answer.to_text()).map_err(|_| Failure::new(format!("{NAME}: no answer")))
}
