//! Ctrl-C and SIGTERM: the program ends and leaves no temporary file, or, where a command asks for it, comes to
//! an end of its own.

use std::process::ExitCode;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::output;

/// Set by the first signal.
static STOP: AtomicBool = AtomicBool::new(false);
/// Does the command end by itself once [`STOP`] is set?
static ORDERLY: AtomicBool = AtomicBool::new(false);
/// The signal.
static SIGNAL: AtomicU8 = AtomicU8::new(0);

/// Number of the signal that Ctrl-C sends.
const SIGINT: u8 = 2;

/// From now on a signal sets the flag that is returned; a second one ends the program.
pub(crate) fn orderly() -> &'static AtomicBool {
    ORDERLY.store(true, Ordering::SeqCst);
    watch();
    &STOP
}

/// From now on a signal that ends the program removes its temporary files.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    // Where it cannot be, a signal ends the program at once, which does no harm but to names.
    ONCE.call_once(|| drop(listen()));
}

/// Exit status of a command that has come to its end after a signal: 128 and the number.
pub(crate) fn status() -> ExitCode {
    let signal = SIGNAL.load(Ordering::SeqCst);
    ExitCode::from(128 + if signal == 0 { SIGINT } else { signal })
}

/// Was there a signal?
pub(crate) fn came() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// Does the program end now? Then it has no temporary file any more, and makes none.
fn ends(signal: u8) -> bool {
    SIGNAL.store(signal, Ordering::SeqCst);
    if !STOP.swap(true, Ordering::SeqCst) && ORDERLY.load(Ordering::SeqCst) {
        return false;
    }
    output::remove_temporaries();
    true
}

#[cfg(unix)]
fn listen() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if ends(signal as u8) {
                // The shell sees that the signal has ended it.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if ends(SIGINT) {
            std::process::exit(128 + i32::from(SIGINT));
        }
    })
}
