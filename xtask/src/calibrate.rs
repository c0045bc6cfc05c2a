//! The search for what the case `cubic-hz` fits: round trip and line rate.

use std::process::ExitCode;

use reproduce::cases::cubic_hz::calibrate::{Point, search};

fn line(point: &Point) -> String {
    let Point { periodic, rate, delay, mbits: [one, two], rtos } = point;
    let kind = if *periodic { "periodic" } else { "random" };
    format!(
        "{kind:>8} {rate:>5} Gbit/s {delay:>5} us each way: {one:>6.1} {two:>6.1} Mbit/s, RTOs {} {}, misfit \
         {:.1} %",
        rtos[0],
        rtos[1],
        100.0 * point.misfit()
    )
}

/// Prints every point of the grid, and the best of either kind of loss.
pub(crate) fn run() -> ExitCode {
    match search(|point| println!("{}", line(point))) {
        Ok(best) => {
            best.iter().for_each(|point| println!("best: {}", line(point)));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
