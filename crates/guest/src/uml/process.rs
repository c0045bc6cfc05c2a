//! The process of a guest: settings before its first instruction, its console, its end.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::poll::{PollTimeout, poll};
use nix::sys::personality::{self, Persona};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::guest::GuestError;

/// Maximum bytes of the console that an error shows.
const SHOWN: u64 = 2_000;
/// Maximum bytes of a console; a kernel that prints more has failed.
const MOST_CONSOLE: u64 = 16 << 20;

/// A directory of this run, which is removed with its contents.
#[derive(Debug)]
pub(crate) struct RunDirectory(PathBuf);

impl RunDirectory {
    /// Creates a directory `name` in `parent`.
    pub(crate) fn new(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Files that cannot be removed stay: a destructor cannot report an error.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The console output of a guest.
#[derive(Debug)]
pub(crate) struct Console {
    file: File,
    read: u64,
    partial: Vec<u8>,
}

impl Console {
    fn create(path: &Path) -> io::Result<(Self, File)> {
        let file = File::options().read(true).append(true).create_new(true).open(path)?;
        let writer = file.try_clone()?;
        Ok((Self { file, read: 0, partial: Vec::new() }, writer))
    }

    /// Reads what is new; `line` gets each whole line.
    pub(crate) fn read_lines(&mut self, mut line: impl FnMut(&str)) -> io::Result<()> {
        let mut bytes = [0; 4_096];
        loop {
            let len = self.file.read_at(&mut bytes, self.read)?;
            if len == 0 {
                return Ok(());
            }
            self.read += len as u64;
            if self.read > MOST_CONSOLE {
                return Err(io::Error::other("it prints without end"));
            }
            for &byte in &bytes[..len] {
                if byte == b'\n' {
                    line(String::from_utf8_lossy(&self.partial).trim_end());
                    self.partial.clear();
                } else {
                    self.partial.push(byte);
                }
            }
        }
    }

    /// Returns the last lines, for errors.
    pub(crate) fn tail(&self) -> String {
        let len = self.file.metadata().map_or(0, |data| data.len());
        let mut bytes = vec![0; len.min(SHOWN) as usize];
        let start = len - bytes.len() as u64;
        if self.file.read_exact_at(&mut bytes, start).is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.replace('\r', "");
        let whole = match start {
            0 => &text[..],
            _ => text.split_once('\n').map_or(&text[..], |(_, rest)| rest),
        };
        let lines: Vec<String> = whole.lines().map(|line| format!("  {line}")).collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// A guest's process, which is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) console: Console,
}

impl Process {
    /// Starts `program` in `directory`.
    ///
    /// # Errors
    /// [`GuestError::Start`], [`GuestError::System`].
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        directory: &Path,
    ) -> Result<Self, GuestError> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory).env_clear();
        // The memory of the guest is a file there, from which the guest executes code.
        let memory = Path::new("/dev/shm");
        command.env("TMPDIR", if memory.is_dir() { memory } else { directory });
        // 6.12 dies with its first process on a host whose libc registers restartable sequences.
        command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        command.stdin(Stdio::null());
        before_exec(&mut command, true);
        Self::spawn(program, command, directory)
    }

    /// Starts a program that is no kernel in `directory`, with a socket as its standard input.
    ///
    /// # Errors
    /// [`GuestError::Start`], [`GuestError::System`].
    pub(crate) fn start_program(
        program: &Path,
        socket: OwnedFd,
        directory: &Path,
    ) -> Result<Self, GuestError> {
        let mut command = Command::new(program);
        command.current_dir(directory).stdin(socket);
        before_exec(&mut command, false);
        Self::spawn(program, command, directory)
    }

    fn spawn(program: &Path, mut command: Command, directory: &Path) -> Result<Self, GuestError> {
        let (console, output) = Console::create(&directory.join("console"))
            .map_err(GuestError::system("the console of a guest"))?;
        let errors = output.try_clone().map_err(GuestError::system("the console of a guest"))?;
        let child = command.process_group(0).stdout(output).stderr(errors).spawn();
        let failed = |error| GuestError::Start { program: program.to_owned(), error };
        Ok(Self { child: child.map_err(failed)?, console })
    }

    /// Adds its console to an error; if a socket failed because it has ended, that is the error.
    pub(crate) fn explain(&mut self, error: GuestError) -> GuestError {
        let gone = [
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
        ];
        match error {
            GuestError::System { error, .. } if gone.contains(&error.kind()) => {
                let status = self.end();
                GuestError::Ended { status, console: self.console.tail() }
            }
            GuestError::Silent { seconds, .. } => {
                GuestError::Silent { seconds, console: self.console.tail() }
            }
            GuestError::Protocol { what, .. } => {
                GuestError::Protocol { what, console: self.console.tail() }
            }
            other => other,
        }
    }

    /// Returns the exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// Returns the exit status after the process closed its sockets: it gets some time to end by
    /// itself.
    pub(crate) fn end(&mut self) -> String {
        for _ in 0..20 {
            if let Some(status) = self.ended() {
                return status;
            }
            // Waits 100 ms; an interruption only shortens it.
            let _ = poll(&mut [], PollTimeout::from(100_u16));
        }
        self.kill();
        "it had closed its sockets, and was killed".to_owned()
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        // The process may have ended by itself; its group has the processes of the guest's users.
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes a guest the same in every run, and makes it end with this program.
#[expect(unsafe_code, reason = "Command::pre_exec")]
fn before_exec(command: &mut Command, is_kernel: bool) {
    // SAFETY: between fork and exec the closure only makes system calls; it allocates no memory and
    // takes no lock.
    unsafe {
        command.pre_exec(move || {
            personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
            setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
            die_with_parent()?;
            if is_kernel { refuse_getrandom() } else { Ok(()) }
        });
    }
}

/// The guest is killed when the thread that started it ends, however that ends.
#[expect(unsafe_code, reason = "prctl(2)")]
fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a number and touches no memory of this process.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes getrandom(2) fail with ENOSYS: it is the only entropy that a User-Mode Linux kernel takes
/// from the host, besides its command line and virtual time.
#[expect(unsafe_code, reason = "seccomp(2) by prctl(2)")]
fn refuse_getrandom() -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        // The number of the system call is the first field of struct seccomp_data.
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, libc::SYS_getrandom as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the filter, which outlives the call; the other arguments are
    // numbers.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}
