//! Ctrl-C, SIGTERM and SIGHUP: the program ends and leaves no temporary file, or a command ends in an
//! orderly way.

use std::process::ExitCode;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::output;

/// Set by the first signal.
static STOP: AtomicBool = AtomicBool::new(false);
/// Does the command end by itself when [`STOP`] is set?
static ORDERLY: AtomicBool = AtomicBool::new(false);
/// Number of the signal.
static SIGNAL: AtomicU8 = AtomicU8::new(0);

/// The signal of Ctrl-C.
const SIGINT: u8 = 2;

/// Makes the first signal set the returned flag and the second one end the program.
pub(crate) fn orderly() -> &'static AtomicBool {
    ORDERLY.store(true, Ordering::SeqCst);
    watch();
    &STOP
}

/// Installs the handler that removes temporary files on a signal.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    // If installing fails, a signal ends the program at once and leaves temporary files.
    ONCE.call_once(|| drop(listen()));
}

/// Exit status of a command that ended after a signal: 128 + number.
pub(crate) fn status() -> ExitCode {
    let signal = SIGNAL.load(Ordering::SeqCst);
    ExitCode::from(128 + if signal == 0 { SIGINT } else { signal })
}

/// Was a signal received?
pub(crate) fn is_raised() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// Handles a signal; returns true if the program ends now, with all temporary files removed.
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
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    // A program that `nohup` started goes on when its terminal is closed.
    let signals = [SIGINT, SIGTERM].into_iter().chain((!is_ignored(SIGHUP)).then_some(SIGHUP));
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if ends(signal as u8) {
                // The shell sees that the program was ended by the signal.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    })?;
    Ok(())
}

/// Whether the program was started with this signal ignored.
#[cfg(unix)]
#[expect(unsafe_code, reason = "sigaction(2)")]
fn is_ignored(signal: i32) -> bool {
    let mut known = core::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action sigaction writes the known one only; zeros are a valid struct.
    unsafe {
        libc::sigaction(signal, core::ptr::null(), known.as_mut_ptr()) == 0
            && known.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(not(unix))]
fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if ends(SIGINT) {
            std::process::exit(128 + i32::from(SIGINT));
        }
    })
}
