//! `ackclock demo`: a diagnosis and its cure, with a capture that the program has in it.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use diagnose::AnalysisSettings;
use ingest::diagnosis::{DiagnosisReport, TextStyle};
use ingest::inputs::{self, InputFile, ReadMode};
use runner::stop::NEVER;
use scenario::ReportStyle;
use whatif::{WhatIf, WhatIfRequest};

use crate::cli::DemoArgs;
use crate::failure::{Failure, look_on};
use crate::output::{self, OutFile, print};

/// A transfer between two real Linux kernels, taken at its sender; the receiver's window is small
/// (`golden/linux/h1_rwnd_cubic`).
const CAPTURE: &[u8] = include_bytes!("../../demo/sender.pcap.xz");
/// Its name in messages and in commands for the reader.
const NAME: &str = "demo.pcap.xz";
/// The cure that the diagnosis names: Linux' own default of the receive buffer.
const CURE: &str = "net.ipv4.tcp_rmem=\"4096 131072 6291456\"";

pub(super) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.save {
        let mut out = OutFile::create(path)?;
        io::Write::write_all(&mut out, CAPTURE)
            .map_err(|error| Failure::file("write", path, &error))?;
        out.commit()?;
        let name = path.display();
        print(&format!("{name}: the capture of the demo; next: ackclock diagnose {name}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(
        "A copy of 4 MB takes 3.3 s on a path that carries 94 Mbit/s. Its capture is in this program.\n\n",
    )?;
    step("ackclock diagnose demo.pcap.xz")?;
    diagnosis()?;
    step(&format!("ackclock whatif demo.pcap.xz --set '{CURE}'"))?;
    print(&answer()?)?;
    print(
        "\nSo the receiver's buffer is the cause, and the default size of Linux cures it.\n\n\
         Next:\n  \
           ackclock demo --save demo.pcap.xz     the capture, to try these commands yourself\n  \
           ackclock slow.pcap                    the same for a capture of your own\n  \
           ackclock explain CC401                the background of the finding\n",
    )?;
    Ok(ExitCode::SUCCESS)
}

fn step(command: &str) -> Result<(), Failure> {
    print(&format!("$ {command}\n"))
}

fn source() -> InputFile<'static> {
    InputFile { name: NAME.to_owned(), bytes: Box::new(CAPTURE) }
}

fn diagnosis() -> Result<(), Failure> {
    let mode = ReadMode::default();
    let mut report = DiagnosisReport::read_with(vec![source()], whatif::MOST_PACKETS, mode)
        .map_err(|error| Failure::new(format!("cannot diagnose {error}")))?;
    whatif::try_worst(&mut report);
    let look = look_on(io::stdout().is_terminal());
    let text = report.text(TextStyle { limit: 1, look }) + "\n";
    match look {
        ReportStyle::Plain => print(&text),
        ReportStyle::Coloured => output::print_in_colour(&text),
    }
}

/// The answer of `whatif` to the cure.
fn answer() -> Result<String, Failure> {
    let settings = AnalysisSettings { packets: usize::MAX, turns: whatif::MAX_EVENTS };
    let reading = inputs::read(vec![source()], settings)
        .map_err(|error| Failure::new(format!("cannot read {error}")))?;
    let stream = reading.streams.first().ok_or_else(|| Failure::new("no connection"))?;
    let request = WhatIfRequest { set: vec![CURE.to_owned()], ..WhatIfRequest::default() };
    let answer = WhatIf::until(stream, &request, &NEVER, None);
    answer.map(|answer| answer.to_text()).map_err(|_| Failure::new(format!("{NAME}: no answer")))
}
