//! `ackclock whatif`: simulates a captured transfer with other senders; `ackclock scenario from`.

use std::path::Path;
use std::process::ExitCode;

use diagnose::AnalysisSettings;
use ingest::inputs::{self, CapturedConnection};
use whatif::{WhatIf, WhatIfError, WhatIfRequest, scenario_of};

use super::diagnose::source;
use crate::cli::{FromArgs, WhatIfArgs};
use crate::failure::Failure;
use crate::output::print;

pub(super) fn run(args: WhatIfArgs) -> Result<ExitCode, Failure> {
    let stream = stream(&args.file, args.flow)?;
    let question = WhatIfRequest { compare: args.compare, set: args.set, sender: args.sender };
    let answer = WhatIf::of(&stream, &question).map_err(|fault| match fault {
        WhatIfError::Fit(unfit) => Failure::new(format!("{}: {unfit}", args.file.display())),
        WhatIfError::Scenario(mistakes) => Failure::Scenario(mistakes),
        WhatIfError::Run(error) => Failure::new(format!("{}: {error}", args.file.display())),
    })?;
    print(&if args.json { answer.to_json() } else { answer.to_text() })?;
    Ok(ExitCode::SUCCESS)
}

/// `ackclock scenario from`.
pub(super) fn from(args: &FromArgs) -> Result<ExitCode, Failure> {
    let stream = stream(&args.file, args.flow)?;
    let text = scenario_of(&stream)
        .map_err(|unfit| Failure::new(format!("{}: {unfit}", args.file.display())))?;
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the selected connection with all its packets.
fn stream(file: &Path, flow: Option<u32>) -> Result<CapturedConnection, Failure> {
    let settings = AnalysisSettings { packets: usize::MAX, turns: whatif::MAX_EVENTS };
    let reading = inputs::read(vec![source(file)?], settings)
        .map_err(|error| Failure::new(format!("cannot read {error}")))?;
    let bytes = |stream: &CapturedConnection| stream.analysis.main().map_or(0, |flow| flow.bytes);
    let found = match flow {
        Some(number) => reading.streams.into_iter().find(|one| one.analysis.stream == number),
        None => reading.streams.into_iter().max_by_key(bytes),
    };
    found.ok_or_else(|| match flow {
        Some(number) => Failure::new(format!("there is no connection {number}"))
            .hint("connections are numbered from 0, as tcp.stream in Wireshark"),
        None => Failure::new(format!("{} contains no connection", file.display())),
    })
}
