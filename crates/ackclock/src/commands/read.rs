//! `ackclock read`: reads the log of a stack, intact or damaged.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use ingest::log_view::{LogFormat, LogStatus, ViewError, view};

use crate::cli::ReadArgs;
use crate::failure::Failure;
use crate::file_kind::other_command;
use crate::input;
use crate::output::{OutFile, standard_output, written};
use crate::visible::ShownPath as _;
use crate::visible::Visible;

pub(super) fn run(args: &ReadArgs) -> Result<ExitCode, Failure> {
    let path = args.file.as_path();
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(input::open(path)?)
    };
    let form = match (args.json, &args.csv) {
        (true, _) => LogFormat::Json,
        (_, Some(_)) => LogFormat::Csv,
        _ => LogFormat::Text,
    };
    if let Some(Some(file)) = &args.csv {
        let mut out = OutFile::create(file)?;
        let status = read(path, input, form, &mut out)?;
        out.commit()?;
        return Ok(status);
    }
    read(path, input, form, &mut BufWriter::new(standard_output()))
}

/// Reads the log to its end, or to where it is no log.
fn read(
    path: &Path,
    input: Box<dyn Read>,
    form: LogFormat,
    out: &mut impl Write,
) -> Result<ExitCode, Failure> {
    let mut aside = Visible::new(io::stderr().lock());
    let shown = view(BufReader::new(input), form, out, &mut aside);
    let verdict = shown.and_then(|verdict| {
        out.flush().map_err(ViewError::Write)?;
        Ok(verdict)
    });
    let name = path.shown();
    match verdict {
        Ok(LogStatus::Whole) => Ok(ExitCode::SUCCESS),
        Ok(LogStatus::Damaged) => Ok(ExitCode::from(1)),
        Ok(LogStatus::NoLog { taken_for, problem }) => {
            let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
            let message = format!("{name}: no record found, read as {taken_for}{problem}");
            let other = other_command(path, "read");
            Err(Failure::new(message).hint(other.as_deref().unwrap_or(
                "logs are those of tcplog_dumper (pcapng), of siftr (text) and qlog (JSON)",
            )))
        }
        Ok(LogStatus::Packed(format)) => {
            let failure = Failure::new(format!("{name} is compressed with {format}"));
            let capture = other_command(path, "read")
                .map(|other| format!("{other}; if it is a log, "))
                .unwrap_or_default();
            let unpack = format!("decompress it first: {format} -dc {name} | ackclock read -");
            Err(failure.hint(capture + &unpack))
        }
        Err(ViewError::Read(error)) => Err(Failure::file("read", path, &error)),
        Err(ViewError::Write(error)) => written(Err(error)).map(|()| ExitCode::SUCCESS),
    }
}
