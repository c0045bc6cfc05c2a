//! `ackclock read`: a log of a stack, whole or damaged.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use ingest::log_view::{Form, Verdict, ViewError, view};

use crate::cli::ReadArgs;
use crate::failure::Failure;
use crate::input;
use crate::output::{standard_output, written};
use crate::visible::Visible;

pub(super) fn run(args: &ReadArgs) -> Result<ExitCode, Failure> {
    let path = args.file.as_path();
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(input::open(path)?)
    };
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    };
    let mut out = BufWriter::new(standard_output());
    let mut aside = Visible::new(io::stderr().lock());
    let shown = view(BufReader::new(input), form, &mut out, &mut aside);
    let verdict = shown.and_then(|verdict| {
        out.flush().map_err(ViewError::Write)?;
        Ok(verdict)
    });
    let name = path.display();
    match verdict {
        Ok(Verdict::Whole) => Ok(ExitCode::SUCCESS),
        Ok(Verdict::Damaged) => Ok(ExitCode::from(1)),
        Ok(Verdict::NoLog { taken_for, problem }) => {
            let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
            let message = format!("{name}: no record found, taken for {taken_for}{problem}");
            Err(Failure::new(message)
                .hint("logs are those of tcplog_dumper (pcapng), of siftr (text) and qlog (JSON)"))
        }
        Ok(Verdict::Packed(format)) => {
            let failure = Failure::new(format!("{name} is packed in {format}"));
            Err(failure.hint(format!("unpack it first: {format} -dc {name} | ackclock read -")))
        }
        Err(ViewError::Read(error)) => Err(Failure::file("read", path, &error)),
        Err(ViewError::Write(error)) => written(Err(error)).map(|()| ExitCode::SUCCESS),
    }
}
